#pragma once

// bf16 and f16 as bits in an unsigned short, widened exactly and narrowed to nearest even without
// any toolkit's half type. Subnormals are kept; every NaN narrows to 0x7fff.

#include "common/ops.cuh"
#include "common/platform.cuh"

// sm_75 neither rounds to bf16 nor to pairs.
#if defined(BROACH_CUDA) && __CUDA_ARCH__ >= 800
#define BROACH_HALF_CONVERSIONS 1
#endif

namespace broach {

enum class Half : unsigned char { kBf16, kF16 };

constexpr unsigned short kHalfNan = 0x7fff;

/// The value of 16 bits, exactly. NaN gives NaN.
template <Half kHalf>
BROACH_DEVICE float widen(unsigned short bits) {
  if constexpr (kHalf == Half::kBf16) {
    return float_of(static_cast<unsigned>(bits) << 16);
  } else {
#if defined(BROACH_CUDA)
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
#else
    // As fp32 bits the value is 2^112 too small, subnormals included; an exponent of 31 must become
    // 255 instead.
    const unsigned magnitude = (bits & 0x7fffu) << 13;
    const float scaled = mul_rn(float_of(magnitude), 0x1p112f);
    const unsigned finite = bits_of(scaled);
    const unsigned wide = (bits & 0x7fffu) >= 0x7c00u ? finite | 0x7f800000u : finite;
    return float_of(wide | (static_cast<unsigned>(bits & 0x8000u) << 16));
#endif
  }
}

/// The nearest 16-bit value, ties to even.
template <Half kHalf>
BROACH_DEVICE unsigned short narrow(float value) {
#if defined(BROACH_HALF_CONVERSIONS)
  // One instruction with these bits, the NaN included (tests/kernel_src/probe_test.cpp compares).
  unsigned short narrowed;
  if constexpr (kHalf == Half::kBf16) {
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(narrowed) : "f"(value));
  } else {
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(narrowed) : "f"(value));
  }
  return narrowed;
#else
  const unsigned bits = bits_of(value);
  const unsigned magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return kHalfNan;
  if constexpr (kHalf == Half::kBf16) {
    return static_cast<unsigned short>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
  } else {
    const unsigned sign = (bits >> 16) & 0x8000u;
    unsigned rounded;
    if (magnitude >= 0x477ff000u) {  // 65520: the tie above the largest finite value.
      rounded = 0x7c00u;
    } else if (magnitude >= 0x38800000u) {  // 2^-14: the least normal.
      rounded = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    } else {
      // The unit of [0.5, 1) in fp32 is f16's least subnormal: the addition rounds to it.
      rounded = bits_of(add_rn(float_of(magnitude), 0.5f)) - 0x3f000000u;
    }
    return static_cast<unsigned short>(sign | rounded);
  }
#endif
}

/// Two of them, `low` in the low half.
template <Half kHalf>
BROACH_DEVICE unsigned narrow_pair(float low, float high) {
#if defined(BROACH_HALF_CONVERSIONS)
  unsigned pair;
  if constexpr (kHalf == Half::kBf16) {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  } else {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  }
  return pair;
#else
  return narrow<kHalf>(low) | static_cast<unsigned>(narrow<kHalf>(high)) << 16;
#endif
}

/// The nearest 16-bit value of a double, rounded once.
///
/// Through fp32 rounded to odd: a value between two floats becomes the one with an odd last bit,
/// which no rounding to 16 bits takes for a tie or for the wrong side of one.
template <Half kHalf>
BROACH_DEVICE unsigned short narrow(double value) {
  const float nearest = static_cast<float>(value);
  const double back = static_cast<double>(nearest);
  unsigned bits = bits_of(nearest);
  if (back != value && back == back && (bits & 1u) == 0) {
    const unsigned long long magnitude = bits_of(value) & 0x7fffffffffffffffull;
    const unsigned long long reached = bits_of(back) & 0x7fffffffffffffffull;
    bits = reached > magnitude ? bits - 1u : bits + 1u;
  }
  return narrow<kHalf>(float_of(bits));
}

/// Whether 16 bits hold neither an infinity nor a NaN.
template <Half kHalf>
BROACH_DEVICE bool is_finite_half(unsigned short bits) {
  constexpr unsigned kExponent = kHalf == Half::kBf16 ? 0x7f80u : 0x7c00u;
  return (bits & kExponent) != kExponent;
}

}  // namespace broach
