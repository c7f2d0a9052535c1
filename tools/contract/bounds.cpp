#include "tools/contract/bounds.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace broach::contract {
namespace {

// The portable exponential is within 2 ulps; an ulp is at most 2^-23 of the value. The last factor
// covers the lower side, 1/(1 + x) against 1 - x, and products of a few such factors.
constexpr double kExponential = 2 * 0x1p-23 * (1 + 0x1p-20);

double exponentials(double count) { return std::pow(1 + kExponential, count) - 1; }

}  // namespace

FormBounds chunk256_bounds(const WindowRowsShape& shape, std::int64_t keys, std::int64_t chunks) {
  FormBounds bounds;
  // Lanes of 8 dims each: a chain of 8 fmas, then a tree over the lanes.
  const auto lanes = std::bit_ceil((shape.head_dim + 7U) / 8U);
  bounds.score_chain = gamma_of(8.0 + std::countr_zero(lanes));
  bounds.score_relative = kFloatUnit;
  bounds.tanh_relative = shape.softcap == Switch::kOn ? 8 * 0x1p-23 : 0;
  // s - m_c and m_c - M: their exact values add up to the distance to the maximum.
  bounds.argument = kFloatUnit;
  bounds.exponential = exponentials(2);
  // A run's chain, the sum over at most 8 runs, the merge's fma chain, the sink.
  const double runs =
      static_cast<double>(std::min<std::int64_t>(keys, 32)) + 7 + static_cast<double>(chunks);
  bounds.numerator_chain = gamma_of(runs);
  bounds.denominator_chain = gamma_of(runs + (shape.sinks == Switch::kOn ? 1 : 0));
  // p and a: 2 ulps of 2^-149 each, and half an ulp an fma; see docs/numerics.md.
  bounds.underflow = 8 * kFloatLeast;
  bounds.division = kFloatUnit;
  return bounds;
}

}  // namespace broach::contract
