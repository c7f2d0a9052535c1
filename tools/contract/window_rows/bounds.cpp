#include "tools/contract/window_rows/bounds.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace broach::contract::window_rows {
namespace {

// The portable exponential is within 2 ulps; an ulp is at most 2^-23 of the value. The last factor
// covers the lower side, 1/(1 + x) against 1 - x, and products of a few such factors.
constexpr double kExponential = 2 * 0x1p-23 * (1 + 0x1p-20);

// What comes after every dot product, and before every output.
FormBounds common_bounds(const WindowRowsShape& shape) {
  FormBounds bounds;
  bounds.score_relative = kFloatUnit;
  bounds.tanh_relative = shape.softcap == Switch::kOn ? 2 * 0x1p-23 : 0;
  // The differences of a chain s_j <= m <= ... <= M round once each; their exact values add up to
  // the distance to the maximum.
  bounds.argument = kFloatUnit;
  bounds.exponential = kExponential;
  // Results below 2^-126: p and its factors are off by 2 of the least value each, an fma by half
  // of one; docs/families/window_rows_ranges.md adds them up.
  bounds.underflow = 8 * kFloatLeast;
  bounds.division = kFloatUnit;
  return bounds;
}

// P as 16 bits, or as two halves whose sum it is: the unit roundoff of the type, squared for two,
// and half of the least subnormal where it ends.
void add_representation(const WindowRowsShape& shape, FormBounds& bounds) {
  const double unit = shape.dtype == Dtype::kBf16 ? 0x1p-8 : 0x1p-11;
  const bool halves = shape.p32 == Switch::kOn;
  bounds.p_relative = halves ? unit * unit : unit;
  bounds.p_absolute = shape.dtype == Dtype::kBf16 ? 0x1p-134 : 0x1p-25;
  bounds.halves = halves ? 2 : 1;
}

// A k16 MMA step is within this times |acc| + sum |ab| of exact, on every chip.
constexpr double kMmaStep = 36 * 0x1p-24;

}  // namespace

FormBounds chunk256_bounds(const WindowRowsShape& shape, std::int64_t keys, std::int64_t chunks) {
  FormBounds bounds = common_bounds(shape);
  // Lanes of 8 dims each: a chain of 8 fmas, then a tree over the lanes.
  const auto lanes = std::bit_ceil((shape.head_dim + 7U) / 8U);
  bounds.score_chain = gamma_of(8.0 + std::countr_zero(lanes));
  bounds.exponentials = 2;  // exp(s_j - m_c) and exp(m_c - M).
  // A run's chain, the sum over at most 8 runs, the merge's fma chain, the sink.
  const double roundings =
      static_cast<double>(std::min<std::int64_t>(keys, 32)) + 7 + static_cast<double>(chunks);
  bounds.numerator_chain = gamma_of(roundings);
  bounds.denominator_chain = gamma_of(roundings + (shape.sinks == Switch::kOn ? 1 : 0));
  return bounds;
}

FormBounds tile64_bounds(const WindowRowsShape& shape, std::int64_t tiles) {
  FormBounds bounds = common_bounds(shape);
  const double sink = shape.sinks == Switch::kOn ? 1 : 0;
  bounds.score_step = kMmaStep;
  bounds.value_step = kMmaStep;
  bounds.exponentials = 2 + sink;  // exp(s_j - m_t), b, and a sink's a.
  bounds.tile_keys = 64;
  // pv_t b rounds once, then an fma a tile; the sink's a multiplies once more.
  const auto folds = static_cast<double>(tiles);
  bounds.numerator_chain = gamma_of(1 + folds + sink);
  // l_t: a pair, a chain of 7, two joins; then as above.
  bounds.denominator_chain = gamma_of(10 + 1 + folds + sink);
  add_representation(shape, bounds);
  return bounds;
}

FormBounds tile64_ex2_bounds(const WindowRowsShape& shape, std::int64_t tiles) {
  FormBounds bounds = tile64_bounds(shape, tiles);
  // log2(e) as fp32 is within 0.224 u of it. Without a softcap the scale enters it with one
  // rounding and no score is rounded; with one, the score is tile64's and the factor is exact.
  const bool softcap = shape.softcap == Switch::kOn;
  bounds.score_relative = softcap ? kFloatUnit : 0;
  bounds.factor_relative = (softcap ? 0.25 : 1.25) * kFloatUnit;
  // ex2 is within 2 ulps as the portable exponential is: 1.23 over all fractions, and ln 2 of one
  // more for the argument's truncation.
  // The maximum is rounded and its own score is not: half an ulp of it is left in the exponent.
  bounds.greatest_p = kFloatUnit;
  // Results below 2^-126 are zero, not subnormal: 2^23 least values each.
  bounds.underflow = 8 * 0x1p-126;
  return bounds;
}

FormBounds mma32_bounds(const WindowRowsShape& shape, std::int64_t tiles) {
  constexpr std::uint32_t kSliceDims = 128;
  FormBounds bounds = common_bounds(shape);
  const double sink = shape.sinks == Switch::kOn ? 1 : 0;
  bounds.score_step = kMmaStep;
  bounds.slice_dims = static_cast<std::int32_t>(kSliceDims);
  // The slices' values are added in order.
  bounds.score_chain = gamma_of(static_cast<double>((shape.head_dim - 1) / kSliceDims));
  bounds.value_step = kMmaStep;
  bounds.exponentials = 1 + sink;  // exp(s_j - m), and a sink's a.
  bounds.tile_keys = 32;
  // An fma a tile; the sink's a multiplies once more.
  const auto folds = static_cast<double>(tiles);
  bounds.numerator_chain = gamma_of(folds + sink);
  // A tile's sum: a pair, a chain of 3, two joins; then as above.
  bounds.denominator_chain = gamma_of(6 + folds + sink);
  add_representation(shape, bounds);
  return bounds;
}

Result<FormBounds> bounds_of(const WindowRowsShape& shape, std::int64_t first_position,
                             std::int64_t keys) {
  const auto pieces = [&](std::int64_t size) {
    return (first_position + keys - 1) / size - first_position / size + 1;
  };
  switch (shape.arith) {
    case Arith::kChunk256:
      return chunk256_bounds(shape, keys, pieces(256));
    case Arith::kTile64:
      return tile64_bounds(shape, pieces(64));
    case Arith::kTile64Ex2:
      return tile64_ex2_bounds(shape, pieces(64));
    case Arith::kMma32:
      return mma32_bounds(shape, pieces(32));
    case Arith::kDefault:
      break;
  }
  return Error{ErrorCode::kUnsupported,
               "the range checker needs a shape whose arithmetic is resolved; this one has default",
               ""};
}

}  // namespace broach::contract::window_rows
