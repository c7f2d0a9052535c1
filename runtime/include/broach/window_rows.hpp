#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "broach/export.hpp"
#include "broach/kernel_info.hpp"
#include "broach/result.hpp"
#include "broach/types.hpp"
#include "broach/window_rows.h"

namespace broach {

class Runtime;
namespace runtime {
struct Operator;
}

/// Which operator a shape is of.
enum class Form : std::uint8_t { kDecode, kPrefill };

/// The named arithmetic of a window_rows kernel. `kDefault` is the target's own choice.
///
/// Source:  docs/families/window_rows.md.
enum class Arith : std::uint8_t { kDefault, kChunk256, kTile64, kMma32, kTile64Ex2 };

/// Whether an arithmetic is tile64 with either exponential: one structure, its own bits each.
constexpr bool is_tile64(Arith arith) noexcept {
  return arith == Arith::kTile64 || arith == Arith::kTile64Ex2;
}

/// What one window_rows kernel is specialised for: sliding-window or full GQA attention.
///
/// Shapes:  head_dim 64, 80, 96, 112, 128, 192, 256 or 512; gqa_ratio 1..32 query heads a KV head;
///          window 0 (every earlier key) or 1..2^20 keys, the row's own included.
struct WindowRowsShape {
  std::uint32_t head_dim = 0;
  std::uint32_t gqa_ratio = 0;
  std::uint32_t window = 0;
  KvLayout kv_layout;
  Dtype dtype = Dtype::kBf16;
  Form form = Form::kDecode;  ///< The operator's; what a request has here does not matter.
  Arith arith = Arith::kDefault;
  Switch p32 = Switch::kOff;      ///< P enters P x V as two 16-bit halves.
  Switch softcap = Switch::kOff;  ///< s <- c * tanh(s / c).
  Switch sinks = Switch::kOff;    ///< One fp32 logit a query head joins the denominator.
  Switch checked = Switch::kOff;  ///< Device-side range checks of positions, slots and pages.

  friend bool operator==(const WindowRowsShape&, const WindowRowsShape&) = default;
};

/// What a decode works on: the C interface's struct (broach/window_rows.h) with its size, a scale
/// of 1 and zeros.
struct WindowRowsDecodeArgs : broach_window_rows_decode_args {
  WindowRowsDecodeArgs() noexcept : broach_window_rows_decode_args{} {
    size = sizeof(broach_window_rows_decode_args);
    attention.scale = 1.0F;
  }
};

/// What a prefill works on, likewise.
struct WindowRowsPrefillArgs : broach_window_rows_prefill_args {
  WindowRowsPrefillArgs() noexcept : broach_window_rows_prefill_args{} {
    size = sizeof(broach_window_rows_prefill_args);
    attention.scale = 1.0F;
  }
};

/// The decode operator of a shape: a small handle on a loaded kernel.
///
/// Threads: any. A launch looks nothing up, allocates nothing and takes no lock.
/// Owns:    shares the loaded module with the Runtime that made it.
class BROACH_API WindowRowsDecode {
 public:
  explicit WindowRowsDecode(std::shared_ptr<const runtime::Operator> op) noexcept;

  /// Bytes of scratch a decode of this many rows needs; SIZE_MAX where no number is enough.
  ///
  /// Units:   max_keys as in the arguments.
  std::size_t workspace_bytes(std::int32_t rows, std::int32_t kv_heads,
                              std::int32_t max_keys) const noexcept;

  /// Launches one decode step on a stream of the device (null: its default stream).
  ///
  /// Errors:  kInvalidArgument naming the argument, its value and its bound; kDriver.
  Result<void> launch(const broach_window_rows_decode_args& args, void* stream) const;

  WindowRowsShape shape() const noexcept;  ///< With every default replaced.
  KernelInfo info() const;                 ///< Of what serves now.

 private:
  std::shared_ptr<const runtime::Operator> op_;
};

/// The prefill operator of a shape, likewise.
class BROACH_API WindowRowsPrefill {
 public:
  explicit WindowRowsPrefill(std::shared_ptr<const runtime::Operator> op) noexcept;

  /// Launches one chunk of each of several sequences. Needs no workspace.
  ///
  /// Errors:  as a decode's.
  Result<void> launch(const broach_window_rows_prefill_args& args, void* stream) const;

  WindowRowsShape shape() const noexcept;  ///< With every default replaced.
  KernelInfo info() const;                 ///< Of what serves now.

 private:
  std::shared_ptr<const runtime::Operator> op_;
};

/// The operators of a shape on a runtime's device; the same handle for the same shape. `stream` is
/// one that the caller may be capturing, or null.
///
/// Errors:  the shape's; kNotWarmed; kCapturing when `stream` is capturing and the shape is not
///          loaded yet; the compiler's; kLimitExceeded.
BROACH_API Result<WindowRowsDecode> window_rows_decode(Runtime& runtime,
                                                       const WindowRowsShape& shape,
                                                       void* stream = nullptr);
BROACH_API Result<WindowRowsPrefill> window_rows_prefill(Runtime& runtime,
                                                         const WindowRowsShape& shape,
                                                         void* stream = nullptr);

}  // namespace broach
