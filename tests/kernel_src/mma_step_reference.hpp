#pragma once

#include <boost/multiprecision/cpp_int.hpp>
#include <cstdint>
#include <span>

namespace broach::test {

/// Parameters of a step as mma_step.md words it.
struct StepRule {
  int in_exponent_bits = 8;
  int in_fraction_bits = 7;
  int align_bits = 25;   ///< The grid's unit is 2^-align_bits of the largest exponent's 1.0.
  int least_top = -133;  ///< The largest exponent counts as this at least.
};

/// One fused step in exact rational arithmetic: every term is a whole multiple of 2^-400.
///
/// Shares nothing with the model but the words: no aligned words, no shifts relative to the
/// largest exponent, no bit counting. Finite inputs only.
///
/// Shapes:  a and b hold as many bit patterns as the step has products; c and the result are fp32.
inline std::uint32_t exact_step(const StepRule& rule, std::span<const std::uint16_t> a,
                                std::span<const std::uint16_t> b, std::uint32_t c) {
  using boost::multiprecision::cpp_int;
  constexpr int kOrigin = 400;
  struct Number {
    cpp_int significand;
    int exponent;  // of the significand's unit
    int scale;     // the number's own exponent, which alignment looks at
  };
  const auto read = [](std::uint32_t bits, int exponent_bits, int fraction_bits) {
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const int field = static_cast<int>(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
    cpp_int significand = bits & ((1U << fraction_bits) - 1);
    int scale = 1 - bias;
    if (field != 0) {
      significand += cpp_int(1) << fraction_bits;
      scale = field - bias;
    }
    if ((bits >> (exponent_bits + fraction_bits)) & 1U) significand = -significand;
    return Number{significand, scale - fraction_bits, scale};
  };

  std::vector<Number> terms;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const Number x = read(a[i], rule.in_exponent_bits, rule.in_fraction_bits);
    const Number y = read(b[i], rule.in_exponent_bits, rule.in_fraction_bits);
    terms.push_back({x.significand * y.significand, x.exponent + y.exponent, x.scale + y.scale});
  }
  terms.push_back(read(c, 8, 23));
  bool any = false;
  int largest = 0;
  for (const Number& term : terms) {
    if (term.significand == 0) continue;
    largest = any ? std::max(largest, term.scale) : term.scale;
    any = true;
  }
  if (!any) return 0;
  largest = std::max(largest, rule.least_top);

  // Division of whole numbers truncates toward zero in cpp_int, as the rule does.
  const cpp_int unit = cpp_int(1) << (kOrigin + largest - rule.align_bits);
  cpp_int sum = 0;
  for (const Number& term : terms) {
    const cpp_int value = term.significand << (kOrigin + term.exponent);
    sum += (value / unit) * unit;
  }
  // The largest fp32 magnitude that does not exceed the sum's, by bisection over its bit patterns:
  // magnitudes of fp32 are ordered as their bits are.
  const cpp_int magnitude = abs(sum);
  std::uint32_t low = 0;
  std::uint32_t high = 0x7F800000U;  // read as 2^128 here: infinity stands for it and above
  const auto value_of = [&](std::uint32_t bits) {
    if (bits == 0x7F800000U) return cpp_int(1) << (kOrigin + 128);
    const Number n = read(bits, 8, 23);
    return cpp_int(n.significand << (kOrigin + n.exponent));
  };
  if (magnitude >= value_of(high)) {
    low = high;
  } else {
    while (high - low > 1) {
      const std::uint32_t middle = low + (high - low) / 2;
      (value_of(middle) <= magnitude ? low : high) = middle;
    }
  }
  return low | (sum < 0 && low != 0 ? 0x80000000U : 0U);  // Truncated to zero, it is +0.
}

}  // namespace broach::test
