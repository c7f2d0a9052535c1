#pragma once

#include <cstdint>

#include "broach/types.hpp"

namespace broach {

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

}  // namespace broach
