#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <random>
#include <string_view>

namespace broach::test {

/// The inputs of one output of an m16n8k16 step.
struct StepInputs {
  std::array<std::uint16_t, 16> a{};
  std::array<std::uint16_t, 16> b{};
  std::uint32_t c = 0;
};

/// How random inputs are spread; each stresses another part of the alignment.
enum class Spread {
  kMixedScales,
  kSixteenOctaves,
  kFreshAccumulator,  ///< c = 0
  kThirdZeros,
  kAllPositive,
  kNearLeastNormal,     ///< Results near and below the least normal.
  kNearLeastSubnormal,  ///< Results near and below half of the least subnormal, from c = 0 often.
};
inline constexpr std::array kSpreads = {
    Spread::kMixedScales, Spread::kSixteenOctaves,  Spread::kFreshAccumulator,  Spread::kThirdZeros,
    Spread::kAllPositive, Spread::kNearLeastNormal, Spread::kNearLeastSubnormal};

constexpr std::string_view name_of(Spread spread) {
  switch (spread) {
    case Spread::kMixedScales:
      return "mixed scales";
    case Spread::kSixteenOctaves:
      return "16 octaves";
    case Spread::kFreshAccumulator:
      return "c = 0";
    case Spread::kThirdZeros:
      return "one third zeros";
    case Spread::kAllPositive:
      return "all positive";
    case Spread::kNearLeastNormal:
      return "near and below the least normal";
    case Spread::kNearLeastSubnormal:
      return "near and below the least subnormal";
  }
  return "";
}

/// A finite 16-bit value with a given exponent (clamped to the format) and a random fraction.
///
/// Shapes:  exponent_bits + fraction_bits = 15.
template <class Random>
std::uint16_t value_near(Random& random, int exponent_bits, int exponent, bool positive) {
  const int fraction_bits = 15 - exponent_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int top = (1 << exponent_bits) - 2;
  const int field = std::min(std::max(exponent + bias, 0), top);
  const auto bits = static_cast<std::uint32_t>(random());
  const std::uint32_t fraction = bits & ((1U << fraction_bits) - 1);
  const std::uint32_t sign = positive ? 0U : (bits >> 16) & 1U;
  return static_cast<std::uint16_t>(
      (sign << 15) | (static_cast<std::uint32_t>(field) << fraction_bits) | fraction);
}

template <class Random>
StepInputs draw_inputs(Random& random, Spread spread, int exponent_bits) {
  const auto between = [&](int low, int high) {
    return low + static_cast<int>(static_cast<std::uint32_t>(random()) %
                                  static_cast<std::uint32_t>(high - low + 1));
  };
  const bool wide = exponent_bits == 8;  // bf16 reaches fp32's range; f16 does not
  StepInputs in;
  const bool positive = spread == Spread::kAllPositive;
  // The centre of a row's exponents, and how far the products lie from it.
  int centre = between(-6, 6);
  int reach = 4;
  if (spread == Spread::kMixedScales && wide) centre = between(-40, 40);
  if (spread == Spread::kSixteenOctaves) reach = 8;
  // bf16 products then reach down to 2^-166; f16 products lie between its subnormals' 2^-48 and
  // 2^-20, which also covers f16 accumulators below the least normal.
  if (spread == Spread::kNearLeastNormal) centre = wide ? between(-78, -58) : between(-24, -10);
  if (spread == Spread::kNearLeastSubnormal) centre = wide ? between(-90, -72) : between(-28, -20);
  for (std::size_t i = 0; i < 16; ++i) {
    in.a[i] = value_near(random, exponent_bits, centre + between(-reach, reach), positive);
    in.b[i] = value_near(random, exponent_bits, centre + between(-reach, reach), positive);
    if (spread == Spread::kThirdZeros) {
      if (between(0, 2) == 0) in.a[i] = static_cast<std::uint16_t>(in.a[i] & 0x8000U);
      if (between(0, 2) == 0) in.b[i] = static_cast<std::uint16_t>(in.b[i] & 0x8000U);
    }
  }
  if (spread != Spread::kFreshAccumulator) {
    const int field = std::min(std::max(2 * centre + between(-2 * reach, 2 * reach) + 127, 0), 254);
    in.c = (static_cast<std::uint32_t>(random()) & 0x807FFFFFU) |
           (static_cast<std::uint32_t>(field) << 23);
    if (positive) in.c &= 0x7FFFFFFFU;
    if (spread == Spread::kThirdZeros && between(0, 2) == 0) in.c = 0;
    if (spread == Spread::kNearLeastSubnormal) {
      // Nothing, or a few of the least units, of either sign.
      in.c = between(0, 1) == 0 ? in.c & 0x80000000U : in.c & 0x80000003U;
    }
  }
  return in;
}

}  // namespace broach::test
