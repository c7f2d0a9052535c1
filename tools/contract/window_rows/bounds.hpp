#pragma once

#include <cstdint>
#include <vector>

#include "broach/result.hpp"
#include "broach/window_rows.hpp"
#include "tools/contract/harness/listed_bound.hpp"

namespace broach::contract::window_rows {

/// The unit roundoff of fp32 to nearest, 2^-24, and its least subnormal, 2^-149.
inline constexpr double kFloatUnit = 0x1p-24;
inline constexpr double kFloatLeast = 0x1p-149;
inline constexpr double kDoubleUnit = 0x1p-53;

/// Higham's gamma_n: n roundings of relative size at most `unit` each stay within it.
constexpr double gamma_of(double roundings, double unit = kFloatUnit) noexcept {
  return roundings * unit / (1.0 - roundings * unit);
}

/// What the fp32 steps of a form may do to one row, before the numbers are known.
///
/// Source:  docs/families/window_rows_ranges.md, derives each and says which step it belongs to. A
/// test
///          takes each away and shows that the checker then turns red.
struct FormBounds {
  /// A score made by fma chains and trees: error at most this times sum |scale q k|.
  double score_chain = 0;
  /// A score made by k16 MMA steps: each adds at most this times |acc| + sum |ab|; and the dims
  /// after which a chain of steps begins again from 0. 0: one chain over all dims.
  double score_step = 0;
  std::int32_t slice_dims = 0;
  /// What comes after the dot product (scale): relative to the score.
  double score_relative = 0;
  /// What the exponent's factor is off by: relative to the final score, the softcap included.
  double factor_relative = 0;
  /// How far P of a row's greatest score may lie from 1: an exponent in base 2, relative to the
  /// greatest score in base 2.
  double greatest_p = 0;
  /// tanh of the softcap: relative to its result.
  double tanh_relative = 0;
  /// Roundings of the exponentials' arguments: relative to the distance to the maximum.
  double argument = 0;
  /// One exponential: relative; and how many of them every weight passes.
  double exponential = 0;
  double exponentials = 0;
  /// Keys a tile where weights are carried along as the maximum moves from tile to tile: each move
  /// that the scores' spread allows is one more exponential. 0 where there is no such chain.
  std::int32_t tile_keys = 0;
  /// The weight's representation when it meets V, in the numerator only: relative and absolute.
  double p_relative = 0;
  double p_absolute = 0;
  /// P x V made by k16 MMA steps from 0 a tile: each adds at most this times |acc| + sum |p v|;
  /// and how many steps (P's halves) 16 keys take.
  double value_step = 0;
  std::int32_t halves = 1;
  /// Sums of weights times values, and of weights: relative to the sums of magnitudes.
  double numerator_chain = 0;
  double denominator_chain = 0;
  /// Results below the least normal: absolute, a key, relative to the greatest magnitude.
  double underflow = 0;
  /// The division: relative to the quotient.
  double division = 0;
};

/// The bounds of `chunk256` for a row that sees `keys` keys over `chunks` chunks.
FormBounds chunk256_bounds(const WindowRowsShape& shape, std::int64_t keys, std::int64_t chunks);

/// The bounds of `tile64`, in either form, for a row that sees keys of `tiles` tiles.
FormBounds tile64_bounds(const WindowRowsShape& shape, std::int64_t tiles);

/// The bounds of `tile64_ex2`, likewise.
FormBounds tile64_ex2_bounds(const WindowRowsShape& shape, std::int64_t tiles);

/// The bounds of `mma32` for a row that sees keys of `tiles` tiles.
FormBounds mma32_bounds(const WindowRowsShape& shape, std::int64_t tiles);

/// The bounds of a row that sees `keys` keys from `first_position` on, by the shape's arithmetic.
///
/// Errors:  kUnsupported naming the arithmetic that has none.
Result<FormBounds> bounds_of(const WindowRowsShape& shape, std::int64_t first_position,
                             std::int64_t keys);

/// Every bound with its values for the Gemma-4-like shape, and why it is what it is.
std::vector<ListedBound> listed_bounds();

}  // namespace broach::contract::window_rows
