#pragma once

// E4M3 (FP8 with 4 exponent bits, bias 7, no infinities, NaN 0x7f) as bits in an unsigned char.

#include "common/half.cuh"
#include "common/ops.cuh"
#include "common/platform.cuh"

// sm_80 and sm_86 have no FP8 instruction.
#if defined(BROACH_CUDA) && __CUDA_ARCH__ >= 890
#define BROACH_E4M3_CONVERSIONS 1
#endif

namespace broach {

constexpr unsigned kE4m3Nan = 0x7f;

/// The nearest E4M3 value, ties to even; beyond 448 the largest of the sign; every NaN 0x7f.
BROACH_DEVICE unsigned e4m3_of(float value) {
  const unsigned bits = bits_of(value);
  const unsigned magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return kE4m3Nan;
  const unsigned sign = bits >> 24 & 0x80u;
  if (magnitude >= 0x43e00000u) return sign | 0x7eu;  // 448, the largest
  if (magnitude >= 0x3c800000u) {                     // 2^-6, the least normal
    return sign | (magnitude - 0x3c000000u + 0x7ffffu + (magnitude >> 20 & 1u)) >> 20;
  }
  // The unit of [2^14, 2^15) in fp32 is the least subnormal, 2^-9: the addition rounds to it.
  return sign | (bits_of(add_rn(float_of(magnitude), 0x1p14f)) - 0x46800000u);
}

/// Two of them, `low` in the low byte.
BROACH_DEVICE unsigned e4m3_pair(float low, float high) {
#if defined(BROACH_E4M3_CONVERSIONS)
  unsigned short pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
  return pair;
#else
  return e4m3_of(low) | e4m3_of(high) << 8;
#endif
}

/// The f16 bits of an E4M3 value, exactly; NaN gives 0x7fff.
BROACH_DEVICE unsigned f16_of_e4m3(unsigned byte) {
  const unsigned magnitude = byte & 0x7fu;
  const unsigned sign = (byte & 0x80u) << 8;
  if (magnitude == kE4m3Nan) return 0x7fffu;
  if (magnitude >= 8u) return sign | ((magnitude << 7) + (8u << 10));
  // Subnormals, k 2^-9, are normal in f16: k's leading bit goes and its exponent is 2^-9's and up.
  if (magnitude == 0) return sign;
  const unsigned top = magnitude >= 4u ? 2u : magnitude >= 2u ? 1u : 0u;
  return sign | (6u + top) << 10 | (magnitude << (10u - top) & 0x3ffu);
}

/// The f16 values of the two low bytes, the lower in the low half.
BROACH_DEVICE unsigned f16_pair_of_e4m3(unsigned bytes) {
#if defined(BROACH_E4M3_CONVERSIONS)
  unsigned pair;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"(static_cast<unsigned short>(bytes)));
  return pair;
#else
  return f16_of_e4m3(bytes & 0xffu) | f16_of_e4m3(bytes >> 8 & 0xffu) << 16;
#endif
}

}  // namespace broach
