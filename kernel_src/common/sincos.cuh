#pragma once

// Sine and cosine, the same bits from every compiler and chip.
//
//   n = round(x 2/pi)           one fma onto a large constant, whose low bits then hold n
//   r = x - n (P1 + P2 + P3)    P1 + P2 + P3 = pi/2 to 2^-76; r = high + low, two floats
//   sin(r) = r + r^3 S(r^2)     cos(r) = 1 - r^2/2 + r^4 C(r^2)       by Horner, one fma a
//   coefficient
//
// The reduction. |n| < 2^19.4 for |x| <= 2^20. x - n P1 is exact in one fma: both terms are whole
// multiples of 2^-23 (2^-24 where |x| < 1), and the difference is below 1, because n is off by at
// most 0.02 of a quarter turn and n (pi/2 - P1) is below 0.03. n P2 is exact as a product and an
// fma's remainder; the difference of x - n P1 and n P2 is exact as a sum and Knuth's error term.
// What is left is the rounding of n P3, below 2^-30 * 2^-24, and of the sums of three terms that
// small. No float up to 2^20 is nearer to a multiple of pi/2 than 2^-27.6, so r is good to 2^-25
// of itself at the worst.
//
// Errors: high alone is r to half a unit. The rounding of the last operation is half a unit of the
// result, the polynomial and its arguments are a fraction of another.

#include "common/ops.cuh"
#include "common/platform.cuh"

namespace broach {

struct SinCos {
  float sin;
  float cos;
};

/// The largest angle that sincos32 promises its error for.
constexpr float kSinCosMost = 0x1p20f;

/// sin(x) and cos(x) in fp32, each within 2 ulps for |x| <= 2^20
/// (tests/kernel_src/sincos_test.cpp).
///
/// sin is odd and cos even to the bit, sin(+-0) = +-0, cos(0) = 1; NaN and infinities give NaN.
/// Beyond 2^20 the values are finite, the same everywhere, and no promise.
BROACH_DEVICE SinCos sincos32(float x) {
  // 1.5 * 2^23: in [2^23, 2^24) the unit is 1, and the low bits of the sum's bits are n's.
  const float shifter = 12582912.0f;
  const float magnitude = float_of(bits_of(x) & 0x7fffffffu);
  const float shifted = fma_rn(magnitude, 0x1.45f306p-1f, shifter);
  const float n = sub_rn(shifted, shifter);
  const unsigned quarter = bits_of(shifted) & 3u;

  const float first = fma_rn(n, -0x1.921fb6p+0f, magnitude);
  const float product = mul_rn(n, -0x1.777a5cp-25f);
  const float product_rest = fma_rn(n, -0x1.777a5cp-25f, -product);
  const float difference = sub_rn(first, product);
  const float taken = sub_rn(first, difference);
  const float rest = add_rn(sub_rn(first, add_rn(difference, taken)), sub_rn(taken, product));
  const float low_terms = fma_rn(n, 0x1.ee59dap-50f, sub_rn(rest, product_rest));
  const float high = add_rn(difference, low_terms);
  const float low = sub_rn(low_terms, sub_rn(high, difference));

  // Minimax on |r| <= 0.83, coefficients rounded to fp32: relative errors of 2^-27.9 in sin(r) from
  // S's first coefficient alone, 2^-30 in cos(r).
  const float square = mul_rn(high, high);
  float s = 0x1.6c3b3cp-19f;
  s = fma_rn(s, square, -0x1.a00ce4p-13f);
  s = fma_rn(s, square, 0x1.111106p-7f);
  s = fma_rn(s, square, -0x1.555556p-3f);
  const float sine = add_rn(high, fma_rn(mul_rn(square, high), s, low));
  float c = 0x1.9930d4p-16f;
  c = fma_rn(c, square, -0x1.6c098cp-10f);
  c = fma_rn(c, square, 0x1.555546p-5f);
  c = fma_rn(c, square, -0.5f);
  const float cosine = add_rn(1.0f, fma_rn(square, c, -mul_rn(high, low)));

  // A quarter turn swaps them, half a turn changes both signs.
  const unsigned sin_sign = (quarter & 2u) << 30 ^ (bits_of(x) & 0x80000000u);
  const unsigned cos_sign = ((quarter + 1u) & 2u) << 30;
  const float of_sin = (quarter & 1u) != 0 ? cosine : sine;
  const float of_cos = (quarter & 1u) != 0 ? sine : cosine;
  return {float_of(bits_of(of_sin) ^ sin_sign), float_of(bits_of(of_cos) ^ cos_sign)};
}

}  // namespace broach
