#pragma once

// exp(x) for x <= 0, the same bits from every compiler and chip.
//
//   n = round(x log2(e))          one fma onto a large constant, whose low bits then hold n
//   r = (x - n L1) - n L2         two fmas; L1 + L2 = ln 2, n L1 exact, |r| <= ln(2) / 2 and a bit
//   p = exp(r)                    a polynomial in Horner form, one fma a coefficient
//   exp(x) = (p 2^(n + k)) 2^-k   the first product is exact; the second rounds only a result below
//                                 the least normal, because p 2^(n + k) is normal for every n
//
// x is cut off where exp(x) is less than half of the least subnormal, so -inf gives +0.

#include "common/ops.cuh"
#include "common/platform.cuh"

namespace broach {

/// exp(x) in fp32, within 2 ulps for x <= 0 (tests/kernel_src/exp_test.cpp tries all of them).
///
/// exp32(-inf) = +0, exp32(+-0) = 1, NaN gives NaN. x > 0 is outside its domain.
BROACH_DEVICE float exp32(float x) {
  // e^-105 < 2^-151. Written so that a NaN passes.
  const float least = -105.0f;
  x = x < least ? least : x;
  // 1.5 * 2^23 + 127 + 32: in [2^23, 2^24) the unit is 1, and the low byte of the sum's bits is the
  // biased exponent of 2^(n + 32).
  const float shifter = 12583071.0f;
  const float shifted = fma_rn(x, 0x1.715476p+0f, shifter);
  const float n = sub_rn(shifted, shifter);
  float r = fma_rn(n, -0x1.62e4p-1f, x);  // 15 significant bits: n times it is exact.
  r = fma_rn(n, -0x1.7f7d1cp-20f, r);
  // exp(r) = 1 + r + r^2 q(r): q is the minimax polynomial of degree 4 on |r| <= 0.34658, relative
  // error of exp 2^-28.3; its coefficients rounded to fp32.
  float p = 0x1.6a2448p-10f;
  p = fma_rn(p, r, 0x1.1239d6p-7f);
  p = fma_rn(p, r, 0x1.5558f2p-5f);
  p = fma_rn(p, r, 0x1.555492p-3f);
  p = fma_rn(p, r, 0x1.fffffcp-2f);
  p = fma_rn(p, r, 1.0f);
  p = fma_rn(p, r, 1.0f);
  const float scale = float_of(bits_of(shifted) << 23);
  return mul_rn(mul_rn(p, scale), 0x1p-32f);
}

/// (exp(r) - 1 - r) / r^2 for |r| <= ln(2) / 2 and a bit: Taylor's terms to r^13 / 13!, the first
/// one left out is below 2^-57 of exp(r).
BROACH_DEVICE double exp64_tail(double r) {
  double q = 0x1.6124613a86d09p-33;         // 1/13!
  q = fma_rn(q, r, 0x1.1eed8eff8d898p-29);  // 1/12!
  q = fma_rn(q, r, 0x1.ae64567f544e4p-26);  // 1/11!
  q = fma_rn(q, r, 0x1.27e4fb7789f5cp-22);  // 1/10!
  q = fma_rn(q, r, 0x1.71de3a556c734p-19);  // 1/9!
  q = fma_rn(q, r, 0x1.a01a01a01a01ap-16);  // 1/8!
  q = fma_rn(q, r, 0x1.a01a01a01a01ap-13);  // 1/7!
  q = fma_rn(q, r, 0x1.6c16c16c16c17p-10);  // 1/6!
  q = fma_rn(q, r, 0x1.1111111111111p-7);   // 1/5!
  q = fma_rn(q, r, 0x1.5555555555555p-5);   // 1/4!
  q = fma_rn(q, r, 0x1.5555555555555p-3);   // 1/3!
  return fma_rn(q, r, 0.5);
}

/// exp(x) in fp64, within 2 ulps for x <= 0, built as exp32 is. Same special values.
BROACH_DEVICE double exp64(double x) {
  const double least = -750.0;  // e^-750 < 2^-1076
  x = x < least ? least : x;
  // 1.5 * 2^52 + 1023 + 600: the low bits are the biased exponent of 2^(n + 600).
  const double shifter = 6755399441057367.0;
  const double shifted = fma_rn(x, 0x1.71547652b82fep+0, shifter);
  const double n = sub_rn(shifted, shifter);
  double r = fma_rn(n, -0x1.62e42fefap-1, x);  // 36 significant bits: n times it is exact.
  r = fma_rn(n, -0x1.cf79abc9e3b3ap-40, r);
  const double q = exp64_tail(r);
  const double p = fma_rn(fma_rn(q, r, 1.0), r, 1.0);
  const double scale = double_of(bits_of(shifted) << 52);
  return mul_rn(mul_rn(p, scale), 0x1p-600);
}

}  // namespace broach
