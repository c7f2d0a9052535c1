#pragma once

#include <cstdint>

#include "broach/types.hpp"

namespace broach::contract {

/// The value that 16 bits hold.
///
/// Source:  bf16 is fp32's upper half; f16 is IEEE 754 binary16.
double value_of(std::uint16_t bits, Dtype dtype) noexcept;

/// The same as fp32, which holds every bf16 and f16 value exactly.
float float_of(std::uint16_t bits, Dtype dtype) noexcept;

/// Rounds once, to nearest even; overflow gives infinity, a NaN the quiet NaN of its sign.
std::uint16_t round_to(double value, Dtype dtype) noexcept;

/// Places 16-bit values on a line: -inf lowest, -0 just below +0, +inf highest.
///
/// NaNs have no place on it; the caller has sorted them out.
constexpr std::int32_t place_of(std::uint16_t bits) noexcept {
  const std::int32_t magnitude = bits & 0x7fff;
  return (bits & 0x8000) != 0 ? -1 - magnitude : magnitude;
}

bool is_nan(std::uint16_t bits, Dtype dtype) noexcept;
bool is_infinite(std::uint16_t bits, Dtype dtype) noexcept;

}  // namespace broach::contract
