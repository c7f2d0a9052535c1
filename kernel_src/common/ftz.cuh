#pragma once

// fp32 operations that flush subnormals to zero, as NVIDIA's .ftz forms do: inputs first, keeping
// their sign; then the result.
//
// A product or fma is flushed when it is below 2^-126 once rounded to 24 bits of an unbounded
// exponent: exact results of magnitude below kKeep = 2^-126 (1 - 2^-25) become a zero of their
// sign, others are kept. (A processor's own flush decides after rounding to the subnormals' grid,
// or before rounding.) A sum below 2^-126 is exact, so it flushes as it stands.

#include "common/ops.cuh"
#include "common/platform.cuh"

namespace broach {

#if defined(BROACH_CUDA)
#define BROACH_FTZ_BINARY(name, instruction)                         \
  BROACH_DEVICE float name(float a, float b) {                       \
    float result;                                                    \
    asm(instruction " %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b)); \
    return result;                                                   \
  }
BROACH_FTZ_BINARY(mul_ftz, "mul.rn.ftz.f32")
BROACH_FTZ_BINARY(add_ftz, "add.rn.ftz.f32")
BROACH_FTZ_BINARY(sub_ftz, "sub.rn.ftz.f32")
BROACH_FTZ_BINARY(max_ftz, "max.ftz.f32")
BROACH_FTZ_BINARY(min_ftz, "min.ftz.f32")
#undef BROACH_FTZ_BINARY

BROACH_DEVICE float fma_ftz(float a, float b, float c) {
  float result;
  asm("fma.rn.ftz.f32 %0, %1, %2, %3;" : "=f"(result) : "f"(a), "f"(b), "f"(c));
  return result;
}
#else
constexpr double kKeep = 0x1.ffffffp-127;

BROACH_DEVICE float signed_zero(bool negative) { return float_of(negative ? 0x80000000u : 0u); }

/// Subnormals as zeros of their sign.
BROACH_DEVICE float flush(float value) {
  const unsigned bits = bits_of(value);
  return float_of((bits & 0x7f800000u) == 0 ? bits & 0x80000000u : bits);
}

/// Whether a result needs the exact decision: magnitude at most 2^-126.
BROACH_DEVICE bool near_flush(float result) {
  return (bits_of(result) & 0x7fffffffu) <= 0x00800000u;
}

BROACH_DEVICE float mul_ftz(float a, float b) {
  a = flush(a);
  b = flush(b);
  const float result = mul_rn(a, b);
  if (!near_flush(result)) return result;
  // Exact: 48 bits, exponents within double's.
  const double product = mul_rn(static_cast<double>(a), static_cast<double>(b));
  const double magnitude = product < 0 ? -product : product;
  return magnitude < kKeep ? signed_zero(bits_of(product) >> 63 != 0) : result;
}

BROACH_DEVICE float fma_ftz(float a, float b, float c) {
  a = flush(a);
  b = flush(b);
  c = flush(c);
  const float result = fma_rn(a, b, c);
  if (!near_flush(result)) return result;
  const double product = mul_rn(static_cast<double>(a), static_cast<double>(b));
  const double addend = static_cast<double>(c);
  // The sum and, exactly, what its rounding to double left out.
  const double sum = add_rn(product, addend);
  const double from_product = sub_rn(sum, addend);
  const double from_addend = sub_rn(sum, from_product);
  const double rest = add_rn(sub_rn(product, from_product), sub_rn(addend, from_addend));
  const bool negative = bits_of(sum) >> 63 != 0;
  const double magnitude = negative ? -sum : sum;
  const bool below = magnitude < kKeep || (magnitude == kKeep && (negative ? rest > 0 : rest < 0));
  return below ? signed_zero(negative) : result;
}

BROACH_DEVICE float add_ftz(float a, float b) { return flush(add_rn(flush(a), flush(b))); }
BROACH_DEVICE float sub_ftz(float a, float b) { return flush(sub_rn(flush(a), flush(b))); }

/// Of a number and a NaN, the number; of two zeros, +0.
BROACH_DEVICE float max_ftz(float a, float b) {
  a = flush(a);
  b = flush(b);
  if (a != a) return b;
  if (b != b) return a;
  if (a == b) return float_of(bits_of(a) & bits_of(b));
  return a > b ? a : b;
}

/// Of a number and a NaN, the number; of two zeros, -0.
BROACH_DEVICE float min_ftz(float a, float b) {
  a = flush(a);
  b = flush(b);
  if (a != a) return b;
  if (b != b) return a;
  if (a == b) return float_of(bits_of(a) | bits_of(b));
  return a < b ? a : b;
}
#endif

/// |value|, a NaN's payload kept.
BROACH_DEVICE float magnitude_of(float value) { return float_of(bits_of(value) & 0x7fffffffu); }

}  // namespace broach
