#pragma once

// tanh for soft caps, from explicit operations and the portable exponential.

#include "common/exp.cuh"
#include "common/ops.cuh"
#include "common/platform.cuh"

namespace broach {

/// tanh(x) in fp32, within 2 ulps (tests/kernel_src/tanh_test.cpp). Odd, tanh(+-inf) = +-1, NaN
/// gives NaN.
///
/// Below 0.625: x + x^3 P(x^2), the minimax P of degree 4, relative error 2^-27.7. From there on
/// (1 - e) / (1 + e) with e = exp(-2 |x|) < 0.287: e's 2 ulps are worth 2 * 0.287 / 2 of an ulp of
/// 1 - e, and the three roundings half an ulp each of values that keep their binade or shrink.
BROACH_DEVICE float tanh32(float x) {
  const float a = float_of(bits_of(x) & 0x7fffffffu);
  float t;
  if (a < 0.625f) {
    const float square = mul_rn(a, a);
    float p = -0x1.75e1cep-8f;
    p = fma_rn(p, square, 0x1.52269cp-6f);
    p = fma_rn(p, square, -0x1.b83c5ap-5f);
    p = fma_rn(p, square, 0x1.110726p-3f);
    p = fma_rn(p, square, -0x1.555532p-2f);
    t = fma_rn(mul_rn(square, a), p, a);
  } else {
    const float e = exp32(mul_rn(-2.0f, a));
    t = div_rn(sub_rn(1.0f, e), add_rn(1.0f, e));
  }
  return float_of(bits_of(t) | (bits_of(x) & 0x80000000u));
}

/// tanh(x) in fp64, within 4 ulps; special values as tanh32.
///
/// -m / (2 + m) with m = exp(-2 |x|) - 1: from the exponential's own polynomial below 0.17, where
/// the difference would cancel, and from the exponential above.
BROACH_DEVICE double tanh64(double x) {
  const double a = double_of(bits_of(x) & 0x7fffffffffffffffull);
  const double r = mul_rn(-2.0, a);
  const double m = a < 0.17 ? fma_rn(exp64_tail(r), mul_rn(r, r), r) : sub_rn(exp64(r), 1.0);
  const double t = div_rn(m, add_rn(2.0, m));
  const unsigned long long sign = bits_of(x) & 0x8000000000000000ull;
  return double_of((bits_of(t) & 0x7fffffffffffffffull) | sign);
}

}  // namespace broach
