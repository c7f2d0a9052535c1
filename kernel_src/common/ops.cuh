#pragma once

// Every rounding of a kernel that promises bits goes through one of these: one IEEE operation,
// rounded to nearest even, never fused with a neighbour, subnormals kept. GCC fuses across
// statements unless told not to, so the host is compiled with -ffp-contract=off; clang and hiprtc
// are told here as well.

#include "common/platform.cuh"

#if defined(__clang__)
#define BROACH_NO_CONTRACTION _Pragma("clang fp contract(off)")
#else
#define BROACH_NO_CONTRACTION
#endif

namespace broach {

#if defined(BROACH_CUDA)
BROACH_DEVICE float fma_rn(float a, float b, float c) { return __fmaf_rn(a, b, c); }
BROACH_DEVICE float mul_rn(float a, float b) { return __fmul_rn(a, b); }
BROACH_DEVICE float add_rn(float a, float b) { return __fadd_rn(a, b); }
BROACH_DEVICE float sub_rn(float a, float b) { return __fsub_rn(a, b); }
BROACH_DEVICE float div_rn(float a, float b) { return __fdiv_rn(a, b); }

BROACH_DEVICE double fma_rn(double a, double b, double c) { return __fma_rn(a, b, c); }
BROACH_DEVICE double mul_rn(double a, double b) { return __dmul_rn(a, b); }
BROACH_DEVICE double add_rn(double a, double b) { return __dadd_rn(a, b); }
BROACH_DEVICE double sub_rn(double a, double b) { return __dsub_rn(a, b); }
BROACH_DEVICE double div_rn(double a, double b) { return __ddiv_rn(a, b); }

BROACH_DEVICE unsigned bits_of(float value) { return __float_as_uint(value); }
BROACH_DEVICE float float_of(unsigned bits) { return __uint_as_float(bits); }
BROACH_DEVICE unsigned long long bits_of(double value) {
  return static_cast<unsigned long long>(__double_as_longlong(value));
}
BROACH_DEVICE double double_of(unsigned long long bits) {
  return __longlong_as_double(static_cast<long long>(bits));
}
#else
BROACH_DEVICE float fma_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
BROACH_DEVICE float mul_rn(float a, float b) {
  BROACH_NO_CONTRACTION
  return a * b;
}
BROACH_DEVICE float add_rn(float a, float b) {
  BROACH_NO_CONTRACTION
  return a + b;
}
BROACH_DEVICE float sub_rn(float a, float b) {
  BROACH_NO_CONTRACTION
  return a - b;
}
BROACH_DEVICE float div_rn(float a, float b) {
  BROACH_NO_CONTRACTION
  return a / b;
}

BROACH_DEVICE double fma_rn(double a, double b, double c) { return __builtin_fma(a, b, c); }
BROACH_DEVICE double mul_rn(double a, double b) {
  BROACH_NO_CONTRACTION
  return a * b;
}
BROACH_DEVICE double add_rn(double a, double b) {
  BROACH_NO_CONTRACTION
  return a + b;
}
BROACH_DEVICE double sub_rn(double a, double b) {
  BROACH_NO_CONTRACTION
  return a - b;
}
BROACH_DEVICE double div_rn(double a, double b) {
  BROACH_NO_CONTRACTION
  return a / b;
}

BROACH_DEVICE unsigned bits_of(float value) {
  unsigned bits;
  __builtin_memcpy(&bits, &value, sizeof(bits));
  return bits;
}
BROACH_DEVICE float float_of(unsigned bits) {
  float value;
  __builtin_memcpy(&value, &bits, sizeof(value));
  return value;
}
BROACH_DEVICE unsigned long long bits_of(double value) {
  unsigned long long bits;
  __builtin_memcpy(&bits, &value, sizeof(bits));
  return bits;
}
BROACH_DEVICE double double_of(unsigned long long bits) {
  double value;
  __builtin_memcpy(&value, &bits, sizeof(value));
  return value;
}
#endif

/// A positive infinity.
BROACH_DEVICE float infinity() { return float_of(0x7f800000u); }

BROACH_DEVICE bool is_finite(float value) { return (bits_of(value) & 0x7f800000u) != 0x7f800000u; }

}  // namespace broach
