#pragma once

#include <cstdint>
#include <span>

#include "specializer/target.hpp"
#include "tools/contract/window_rows/problem.hpp"

namespace broach::contract::window_rows {

// Keys of zeros make every score 0 (or a cap's tanh of 0) and every weight exactly 1, whatever the
// queries are; a sink of 0 is one more weight of 1. What is left of the arithmetic is its sums.

/// Makes every weight exactly 1. Cells that no row sees keep their NaN.
void set_keys_to_zero(Problem& problem);

/// Dims after which mirrored values repeat.
inline constexpr std::int32_t kMirroredDims = 13;

/// Mirrored values: +-2944 by turns of 32 keys, plus a small multiple of 16 that depends on the
/// dim.
///
/// All are integers of 8 significant bits, so that bf16 and f16 hold them exactly, and no partial
/// sum of 32-key turns reaches 2^24, so that fp32 holds every partial sum in any order. One turn's
/// sum, 32 * 2944 = 94,208, is past f16's 65,504; in bf16 its unit is 512, so that the small part
/// is lost.
void set_values_mirrored(Problem& problem);

/// Cancelling values: of the keys of each slot's row that sees most, the second fifth holds 57,344,
/// the fourth its negative, and the others are as they were.
///
/// A fifth sums to millions, so that what came before it is rounded at a unit near 1 when it joins,
/// what comes between is rounded piece by piece, and what comes after the two have cancelled is
/// not: each rounding shows in what is left, and so does the order of the pieces.
void set_values_cancelling(Problem& problem);

/// Keys of the pieces that an arithmetic's sums are made of, at absolute positions.
std::int32_t piece_keys(Arith arith) noexcept;

/// An accumulator's format: what every partial sum is rounded to.
using Narrow = float (*)(float);
float as_fp32(float x);
float as_f16(float x);
float as_bf16(float x);

/// The output that the shape's arithmetic gives where every weight is 1, its sums in its own order
/// on a chip's MMA steps, each partial sum rounded by `narrow`.
std::uint16_t unit_weight_output(const Problem& problem, specializer::MmaStep step,
                                 std::int32_t row, std::int32_t head, std::int32_t dim,
                                 Narrow narrow = as_fp32);

/// float64's output where every weight is 1.
std::uint16_t unit_weight_float64(const Problem& problem, std::int32_t row, std::int32_t head,
                                  std::int32_t dim);

/// How many outputs have other bits than float64's where every weight is 1.
struct Apart {
  std::uint64_t outputs = 0;
  std::uint64_t apart = 0;
};

/// Shapes:  `out` as the problem's strides lay it out, with finite outputs.
Apart apart_from_float64(const Problem& problem, std::span<const std::uint16_t> out);

/// The exact quotient of mirrored values, from integers alone.
std::uint16_t mirrored_output(const Problem& problem, std::int32_t row, std::int32_t dim);

}  // namespace broach::contract::window_rows
