#pragma once

#include <cstdint>
#include <memory>

#include "broach/export.hpp"
#include "broach/kernel_info.hpp"
#include "broach/qk_rows.h"
#include "broach/result.hpp"
#include "broach/types.hpp"

namespace broach {

class Runtime;
namespace runtime {
struct Operator;
}

/// How the dims of a head pair up for a rotation.
enum class RopeStyle : std::uint8_t {
  kHalf,         ///< j and j + rope_dim / 2.
  kInterleaved,  ///< 2j and 2j + 1.
};

/// The norm over a head's dims.
enum class HeadNorm : std::uint8_t {
  kNone,
  kRms,  ///< x (1 / sqrt(mean x^2 + epsilon)) w
  kL2,   ///< x (1 / sqrt(sum x^2 + epsilon))
};

/// Which of a head's two steps comes first. Each ends in a rounding to 16 bits.
enum class QkOrder : std::uint8_t { kRopeNorm, kNormRope };

/// What one qk_rows kernel is specialised for: RoPE, head norms and the writes of K and V.
///
/// Shapes:  head_dim as in window_rows; gqa_ratio 1..32 query heads a KV head; rope_dim the first
///          dims of a head that turn, even, 0 (none) to head_dim.
/// Source:  docs/families/qk_rows.md.
struct QkRowsShape {
  std::uint32_t head_dim = 0;
  std::uint32_t gqa_ratio = 0;
  std::uint32_t rope_dim = 0;
  RopeStyle rope_style = RopeStyle::kHalf;
  HeadNorm norm = HeadNorm::kNone;
  QkOrder order = QkOrder::kRopeNorm;
  Switch q_scale = Switch::kOff;  ///< Query heads are scaled by an fp32 vector, last.
  KvLayout kv_layout;
  Dtype dtype = Dtype::kBf16;
  Switch checked = Switch::kOff;  ///< Device-side range checks of positions, slots, pages, angles.

  friend bool operator==(const QkRowsShape&, const QkRowsShape&) = default;
};

/// What a launch works on: the C interface's struct (broach/qk_rows.h) with its size, an epsilon of
/// 1e-6 and zeros.
struct QkRowsArgs : broach_qk_rows_args {
  QkRowsArgs() noexcept : broach_qk_rows_args{} {
    size = sizeof(broach_qk_rows_args);
    epsilon = 1e-6F;
  }
};

/// The operator of a shape: a small handle on a loaded kernel.
///
/// Threads: any. A launch looks nothing up, allocates nothing and takes no lock.
/// Owns:    shares the loaded module with the Runtime that made it.
class BROACH_API QkRows {
 public:
  explicit QkRows(std::shared_ptr<const runtime::Operator> op) noexcept;

  /// Launches on a stream of the device (null: its default stream).
  ///
  /// Errors:  kInvalidArgument naming the argument, its value and its bound; kDriver.
  Result<void> launch(const broach_qk_rows_args& args, void* stream) const;

  QkRowsShape shape() const noexcept;  ///< Without choices that change nothing.
  KernelInfo info() const;             ///< Of what serves now.

 private:
  std::shared_ptr<const runtime::Operator> op_;
};

/// The operator of a shape on a runtime's device; the same one for the same shape. `stream` is one
/// that the caller may be capturing, or null.
///
/// Errors:  the shape's; kNotWarmed; kCapturing when `stream` is capturing and the shape is not
///          loaded yet; the compiler's.
BROACH_API Result<QkRows> qk_rows_operator(Runtime& runtime, const QkRowsShape& shape,
                                           void* stream = nullptr);

}  // namespace broach
