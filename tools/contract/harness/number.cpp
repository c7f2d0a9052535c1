#include "tools/contract/harness/number.hpp"

#include <bit>
#include <cmath>

namespace broach::contract {
namespace {

struct Format {
  int significand_bits;  // The implicit one included.
  int least_exponent;    // Of the least normal value.
  std::uint16_t infinity;
};

constexpr Format format_of(Dtype dtype) noexcept {
  return dtype == Dtype::kBf16 ? Format{8, -126, 0x7f80} : Format{11, -14, 0x7c00};
}

}  // namespace

float float_of(std::uint16_t bits, Dtype dtype) noexcept {
  if (dtype == Dtype::kBf16) return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1f;
  const std::uint32_t fraction = bits & 0x3ff;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
    return sign != 0 ? -magnitude : magnitude;
  }
  const std::uint32_t wide = exponent == 0x1f ? 0xffU : exponent + 127 - 15;
  return std::bit_cast<float>(sign | (wide << 23) | (fraction << 13));
}

double value_of(std::uint16_t bits, Dtype dtype) noexcept { return float_of(bits, dtype); }

std::uint16_t round_to(double value, Dtype dtype) noexcept {
  const Format format = format_of(dtype);
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
  const double magnitude = std::fabs(value);
  if (std::isnan(value)) {
    const int quiet = 1 << (format.significand_bits - 2);
    return static_cast<std::uint16_t>(sign | format.infinity | quiet);
  }
  if (std::isinf(value)) return static_cast<std::uint16_t>(sign | format.infinity);
  // The grid around the value: its unit is a power of two, so the division is exact.
  int exponent = format.least_exponent;
  if (magnitude > 0) exponent = std::max(std::ilogb(magnitude), format.least_exponent);
  const double unit = std::ldexp(1.0, exponent - (format.significand_bits - 1));
  const double steps = std::nearbyint(magnitude / unit);
  // Biased exponent and fraction are one integer: a carry out of the fraction is a step of the
  // exponent, and the step past the greatest finite value is infinity.
  const int fraction_bits = format.significand_bits - 1;
  const auto biased = static_cast<std::int64_t>(exponent - format.least_exponent) << fraction_bits;
  const std::int64_t code = biased + static_cast<std::int64_t>(steps);
  if (code >= format.infinity) return static_cast<std::uint16_t>(sign | format.infinity);
  return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(code));
}

bool is_nan(std::uint16_t bits, Dtype dtype) noexcept {
  return (bits & 0x7fff) > format_of(dtype).infinity;
}

bool is_infinite(std::uint16_t bits, Dtype dtype) noexcept {
  return (bits & 0x7fff) == format_of(dtype).infinity;
}

}  // namespace broach::contract
