#pragma once

// The square root, the same bits from every compiler and chip: HIP's own is not correctly rounded
// under every toolchain.
//
//   y = 1 / sqrt(m)            a guess from the bits, then Newton's y (3 - m y^2) / 2
//   s = m y                    r = m - s^2 exactly, by an fma        sqrt(m) = s + r y / 2
//
// m is x scaled by an even power of two into [1, 4): a pattern of m decides all of them.

#include "common/ops.cuh"
#include "common/platform.cuh"

namespace broach {

/// sqrt(x) in fp32, correctly rounded (tests/kernel_src/sqrt_test.cpp tries every significand).
///
/// sqrt32(+-0) = +-0, sqrt32(+inf) = +inf, NaN below zero.
BROACH_DEVICE float sqrt32(float x) {
  unsigned bits = bits_of(x);
  if (bits << 1 == 0 || bits == 0x7f800000u) return x;
  if (bits > 0x7f800000u) return float_of(0x7fc00000u);
  int scale = 0;
  if (bits < 0x00800000u) {
    bits = bits_of(mul_rn(x, 0x1p24f));
    scale = -24;
  }
  const int exponent = static_cast<int>(bits >> 23) - 127;
  const int odd = exponent & 1;
  const float m = float_of((bits & 0x007fffffu) | static_cast<unsigned>(127 + odd) << 23);
  float y = float_of(0x5f375a86u - (bits_of(m) >> 1));
  const float minus_half = mul_rn(m, -0.5f);
  BROACH_UNROLL
  for (int i = 0; i < 3; ++i) y = mul_rn(y, fma_rn(mul_rn(minus_half, y), y, 1.5f));
  float s = mul_rn(m, y);
  s = fma_rn(fma_rn(-s, s, m), mul_rn(0.5f, y), s);
  // Normal whatever x was: the least root is near 2^-75.
  return mul_rn(s, float_of(static_cast<unsigned>(127 + (exponent - odd + scale) / 2) << 23));
}

}  // namespace broach
