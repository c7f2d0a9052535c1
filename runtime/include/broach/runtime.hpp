#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "broach/export.hpp"
#include "broach/metrics.hpp"
#include "broach/options.hpp"
#include "broach/result.hpp"
#include "broach/types.hpp"

namespace broach {

/// What a decode launch works on. D = head_dim, H = kv_heads * gqa_ratio; D is contiguous.
///
/// Shapes:  q and out [rows, H, D]; k and v [slot_count, length, kv_heads, D] (paged: pages of
///          [page, kv_heads, D]); positions and slots [rows]; sinks [H]; page_table
///          [slot_count, pages a slot].
/// Units:   strides in elements; pointers are device pointers of the operator's device.
struct DecodeArgs {
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  void* out = nullptr;
  const std::int32_t* positions = nullptr;  ///< Position of each row's own key.
  const std::int32_t* slots = nullptr;      ///< Slot of each row's stream.
  const std::int32_t* page_table = nullptr;
  const float* sinks = nullptr;
  void* workspace = nullptr;
  std::size_t workspace_bytes = 0;
  std::int64_t q_row_stride = 0, q_head_stride = 0;
  std::int64_t k_slot_stride = 0, k_position_stride = 0, k_head_stride = 0;
  std::int64_t v_slot_stride = 0, v_position_stride = 0, v_head_stride = 0;
  std::int64_t out_row_stride = 0, out_head_stride = 0;
  std::int64_t page_table_stride = 0;
  std::int32_t rows = 0;
  std::int32_t kv_heads = 0;
  std::int32_t slot_count = 0;
  std::int32_t length = 0;    ///< Positions a slot holds (ring: the shape's ring length).
  std::int32_t max_keys = 0;  ///< Upper bound on position + 1 over the rows; 0: `length` (linear).
  float scale = 1.0F;
  float softcap = 0.0F;
};

/// What a prefill launch works on: chunks of several sequences, their rows one after another.
///
/// Row i of a sequence sits at position p0 + i and sees the keys of its window up to `hi`, else up
/// to its own position. The chunk's own keys are in the cache already.
///
/// Shapes:  `common` as in a decode, but `rows` counts the rows of all sequences, and positions
///          (p0) and slots are [sequences]; offsets [sequences + 1]; hi [rows].
struct PrefillArgs {
  DecodeArgs common;                      ///< No workspace is used.
  const std::int32_t* offsets = nullptr;  ///< First row of each sequence, then `common.rows`.
  const std::int32_t* hi = nullptr;       ///< p0 + i <= hi < p0 + the chunk's rows; may be null.
  std::int32_t sequences = 0;
};

/// A window_rows operator: a small handle on a loaded kernel.
///
/// Threads: any. A launch looks nothing up, allocates nothing and takes no lock.
/// Owns:    shares the loaded module with the Runtime that made it.
class BROACH_API WindowRows {
 public:
  /// Bytes of scratch a decode of this many rows needs.
  ///
  /// Units:   max_keys as in DecodeArgs.
  std::size_t workspace_bytes(std::int32_t rows, std::int32_t kv_heads,
                              std::int32_t max_keys) const noexcept;

  /// Launches one decode step on a stream of the device (null: its default stream).
  ///
  /// Errors:  kInvalidArgument naming the argument, its value and its bound; kDriver.
  Result<void> decode(const DecodeArgs& args, void* stream) const;

  /// Launches one prefill chunk of each of several sequences; for a shape with form=prefill.
  ///
  /// Errors:  as decode.
  Result<void> prefill(const PrefillArgs& args, void* stream) const;

  const WindowRowsShape& shape() const noexcept;

  struct State;
  explicit WindowRows(std::shared_ptr<const State> state) noexcept : state_(std::move(state)) {}

 private:
  std::shared_ptr<const State> state_;
};

/// Operators on one device, with the cache and the compilers behind them.
///
/// Threads: any.
class BROACH_API Runtime {
 public:
  /// Errors:  kNotFound when the named device cannot be opened, with what was tried.
  static Result<Runtime> create(Options options);
  ~Runtime();
  Runtime(Runtime&&) noexcept;
  Runtime& operator=(Runtime&&) noexcept;

  /// The operator of a shape; the same handle for the same shape, without hashing a string.
  ///
  /// Errors:  the shape check's; kNotWarmed; kCapturing when `stream` is capturing and the shape
  ///          is not loaded yet; the compiler's; kLimitExceeded.
  Result<WindowRows> window_rows(const WindowRowsShape& shape, void* stream = nullptr);

  /// What was counted and timed so far: look-ups, waits, compiles, publishes, loads.
  Metrics metrics() const;

  std::string device_name() const;
  std::string target_name() const;

  struct State;
  State& state() noexcept { return *state_; }

 private:
  explicit Runtime(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace broach
