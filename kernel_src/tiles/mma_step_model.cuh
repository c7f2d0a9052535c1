#pragma once

// The exact model of one MMA step, on bit patterns and integers only.
//
//   d = c + sum_i a_i * b_i        a, b: bf16 or f16; c and d: fp32 or f16
//
// Every product is exact, with the exponent e_a + e_b (not renormalised; a subnormal counts with
// its format's least exponent). The accumulator has its own exponent. Let E be the largest exponent
// among the terms that are not zero, and -133 at least (kLeastTop). Each term is truncated toward
// zero onto the grid 2^(E - A), A being the chip's alignment bits; the truncated terms are added
// exactly; the sum is rounded once: toward zero to fp32 (subnormals kept, 2^128 and above is
// infinity), or to nearest even to f16.
//
// sm_90 and later: one step of 16 products, A = 25. sm_80 to sm_89: m16n8k16 is two steps of 8
// products in k order, A = 24, fp32 between them.
//
// A NaN, zero times infinity, or infinities of both signs give the canonical NaN (0x7FFFFFFF,
// f16 0x7FFF); otherwise an infinite term gives its infinity. A sum that is zero, exactly or once
// truncated, is +0.
//
// No header is included and no floating-point operation is used, so the result cannot depend on a
// compiler, a flag or a rounding mode.

#if defined(__CUDACC__) || defined(__HIPCC__) || defined(__HIP__)
#define BROACH_MODEL __host__ __device__ inline
#else
#define BROACH_MODEL inline
#endif

namespace broach::tiles {

/// bfloat16: 8 exponent bits, 7 fraction bits.
struct Bf16Format {
  static constexpr int kExponentBits = 8;
  static constexpr int kFractionBits = 7;
};

/// IEEE half: 5 exponent bits, 10 fraction bits.
struct F16Format {
  static constexpr int kExponentBits = 5;
  static constexpr int kFractionBits = 10;
};

/// IEEE single, as the accumulator.
struct F32Format {
  static constexpr int kExponentBits = 8;
  static constexpr int kFractionBits = 23;
};

/// A value taken apart: (-1)^negative * significand * 2^(exponent - fraction bits).
///
/// Units:   zero has significand 0 and the exponent kZeroExponent, which no maximum picks.
struct Parts {
  unsigned significand;
  int exponent;
  bool negative;
  bool special;  ///< Infinity (fraction 0) or NaN; the significand is then the fraction.
};

/// Below every exponent of a product by more than any alignment, and far from overflow in sums.
constexpr int kZeroExponent = -4096;

/// The unit's grid is never finer than this exponent's: found on an H200, where any other floor
/// disagrees with mma.sync on products near the least subnormal (tests/kernel_src/mma_probe_test).
constexpr int kLeastTop = -133;

constexpr unsigned kCanonicalNan = 0x7FFFFFFFU;
constexpr unsigned short kCanonicalNanF16 = 0x7FFFU;

template <class Format>
BROACH_MODEL Parts take_apart(unsigned bits) {
  constexpr int kFraction = Format::kFractionBits;
  constexpr int kTop = (1 << Format::kExponentBits) - 1;
  constexpr int kBias = kTop >> 1;
  const int field = static_cast<int>(bits >> kFraction) & kTop;
  const unsigned fraction = bits & ((1U << kFraction) - 1U);
  const bool negative = (bits >> (kFraction + Format::kExponentBits)) & 1U;
  if (field == kTop) return {fraction, 0, negative, true};
  if (field == 0) return {fraction, fraction == 0 ? kZeroExponent : 1 - kBias, negative, false};
  return {fraction | (1U << kFraction), field - kBias, negative, false};
}

/// Index of the highest set bit of a non-zero value.
BROACH_MODEL int highest_bit(unsigned long long value) {
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
  return 63 - __clzll(static_cast<long long>(value));
#else
  return 63 - __builtin_clzll(value);
#endif
}

/// fp32 bits of sum * 2^unit, truncated toward zero.
BROACH_MODEL unsigned truncate_to_f32(long long sum, int unit) {
  if (sum == 0) return 0;
  const unsigned sign = sum < 0 ? 0x80000000U : 0U;
  const auto magnitude = static_cast<unsigned long long>(sum < 0 ? -sum : sum);
  const int high = highest_bit(magnitude);
  const int exponent = high + unit;
  if (exponent > 127) return sign | 0x7F800000U;
  // The unit of the result: 2^(exponent - 23), but never below the subnormals' 2^-149.
  const int shift = (exponent < -126 ? -149 : exponent - 23) - unit;
  const unsigned long long kept =
      shift >= 64 ? 0 : (shift >= 0 ? magnitude >> shift : magnitude << -shift);
  const auto significand = static_cast<unsigned>(kept);
  if (exponent < -126) return significand == 0 ? 0 : sign | significand;
  return sign | (static_cast<unsigned>(exponent + 127) << 23) | (significand & 0x7FFFFFU);
}

/// f16 bits of sum * 2^unit, rounded to nearest even.
BROACH_MODEL unsigned short round_to_f16(long long sum, int unit) {
  if (sum == 0) return 0;
  const unsigned sign = sum < 0 ? 0x8000U : 0U;
  const auto magnitude = static_cast<unsigned long long>(sum < 0 ? -sum : sum);
  const int exponent = highest_bit(magnitude) + unit;
  const int shift = (exponent < -14 ? -24 : exponent - 10) - unit;
  unsigned long long kept;
  if (shift <= 0) {
    kept = magnitude << -shift;
  } else if (shift >= 63) {
    kept = 0;  // The sum has fewer than 40 bits: less than half of the result's unit.
  } else {
    kept = magnitude >> shift;
    const unsigned long long rest = magnitude & ((1ULL << shift) - 1);
    const unsigned long long half = 1ULL << (shift - 1);
    if (rest > half || (rest == half && (kept & 1U) != 0)) ++kept;
  }
  // A carry out of the fraction moves into the exponent field, which is what rounding up means.
  const unsigned field = exponent < -14 ? 0U : static_cast<unsigned>(exponent + 14);
  const unsigned long long bits = (static_cast<unsigned long long>(field) << 10) + kept;
  if (exponent > 15 || bits >= 0x7C00U) return static_cast<unsigned short>(sign | 0x7C00U);
  return static_cast<unsigned short>(sign | static_cast<unsigned>(bits));
}

/// What the non-finite terms of a step decide.
enum class Special : unsigned char { kNone, kPositive, kNegative, kNan };

BROACH_MODEL Special join(Special left, Special right) {
  if (left == Special::kNone) return right;
  if (right == Special::kNone || left == right) return left;
  return Special::kNan;
}

BROACH_MODEL Special special_of(const Parts& value) {
  if (!value.special) return Special::kNone;
  if (value.significand != 0) return Special::kNan;
  return value.negative ? Special::kNegative : Special::kPositive;
}

BROACH_MODEL Special special_of_product(const Parts& a, const Parts& b) {
  if (!a.special && !b.special) return Special::kNone;
  const bool nan = (a.special && a.significand != 0) || (b.special && b.significand != 0);
  // With an infinity on one side, a zero significand on the other is a zero or an infinity.
  const bool zero = (!a.special && a.significand == 0) || (!b.special && b.significand == 0);
  if (nan || zero) return Special::kNan;
  return a.negative != b.negative ? Special::kNegative : Special::kPositive;
}

/// One aligned sum: what a step holds before its rounding.
struct AlignedSum {
  long long sum;  ///< In units of 2^unit; at most 17 terms below 2^(A + 2).
  int unit;
  Special special;
};

/// Aligns and adds kTerms products and the accumulator.
///
/// Shapes:  a and b hold kTerms bit patterns each, `stride` apart.
template <class In, class Accumulator, int kTerms, int kAlignBits>
BROACH_MODEL AlignedSum aligned_sum(const unsigned short* a, int a_stride, const unsigned short* b,
                                    int b_stride, unsigned c) {
  static_assert(kAlignBits >= 2 * In::kFractionBits && kAlignBits >= Accumulator::kFractionBits);
  const Parts acc = take_apart<Accumulator>(c);
  Special special = special_of(acc);
  unsigned product[static_cast<unsigned>(kTerms)] = {};
  int exponent[static_cast<unsigned>(kTerms)] = {};
  bool negative[static_cast<unsigned>(kTerms)] = {};
  int top = acc.exponent > kLeastTop ? acc.exponent : kLeastTop;
  for (int i = 0; i < kTerms; ++i) {
    const Parts left = take_apart<In>(a[i * a_stride]);
    const Parts right = take_apart<In>(b[i * b_stride]);
    special = join(special, special_of_product(left, right));
    product[i] = left.significand * right.significand;
    exponent[i] = left.exponent + right.exponent;
    negative[i] = left.negative != right.negative;
    if (product[i] != 0 && exponent[i] > top) top = exponent[i];
  }
  if (special != Special::kNone) return {0, 0, special};
  long long sum = 0;
  for (int i = 0; i < kTerms; ++i) {
    if (product[i] == 0) continue;
    const int drop = top - exponent[i];
    const unsigned long long full = static_cast<unsigned long long>(product[i])
                                    << (kAlignBits - 2 * In::kFractionBits);
    const auto term = static_cast<long long>(drop < 64 ? full >> drop : 0);
    sum += negative[i] ? -term : term;
  }
  if (acc.significand != 0) {
    const int drop = top - acc.exponent;
    const unsigned long long full = static_cast<unsigned long long>(acc.significand)
                                    << (kAlignBits - Accumulator::kFractionBits);
    const auto term = static_cast<long long>(drop < 64 ? full >> drop : 0);
    sum += acc.negative ? -term : term;
  }
  return {sum, top - kAlignBits, Special::kNone};
}

/// One fused step with an fp32 accumulator.
template <class In, int kTerms, int kAlignBits>
BROACH_MODEL unsigned fused_step(const unsigned short* a, int a_stride, const unsigned short* b,
                                 int b_stride, unsigned c) {
  const AlignedSum s = aligned_sum<In, F32Format, kTerms, kAlignBits>(a, a_stride, b, b_stride, c);
  switch (s.special) {
    case Special::kPositive:
      return 0x7F800000U;
    case Special::kNegative:
      return 0xFF800000U;
    case Special::kNan:
      return kCanonicalNan;
    case Special::kNone:
      break;
  }
  return truncate_to_f32(s.sum, s.unit);
}

/// One fused step with an f16 accumulator (sm_90).
template <class In>
BROACH_MODEL unsigned short fused_step_f16(const unsigned short* a, int a_stride,
                                           const unsigned short* b, int b_stride,
                                           unsigned short c) {
  const AlignedSum s = aligned_sum<In, F16Format, 16, 25>(a, a_stride, b, b_stride, c);
  switch (s.special) {
    case Special::kPositive:
      return 0x7C00U;
    case Special::kNegative:
      return 0xFC00U;
    case Special::kNan:
      return kCanonicalNanF16;
    case Special::kNone:
      break;
  }
  return round_to_f16(s.sum, s.unit);
}

/// m16n8k16 on sm_90 and later: one fused step of 16 products.
struct OneK16 {
  static constexpr int kTerms = 16;
  static constexpr int kAlignBits = 25;
};

/// m16n8k16 on sm_80 to sm_89: two fused steps of 8 products in k order.
struct TwoK8 {
  static constexpr int kTerms = 8;
  static constexpr int kAlignBits = 24;
};

/// c + sum of a_i b_i over k = 16 as one chip's m16n8k16 computes it.
///
/// Shapes:  a and b hold 16 bit patterns each, `a_stride` and `b_stride` apart; c is fp32 bits.
template <class In, class Step>
BROACH_MODEL unsigned mma_step(const unsigned short* a, int a_stride, const unsigned short* b,
                               int b_stride, unsigned c) {
  for (int k = 0; k < 16; k += Step::kTerms) {
    c = fused_step<In, Step::kTerms, Step::kAlignBits>(a + k * a_stride, a_stride, b + k * b_stride,
                                                       b_stride, c);
  }
  return c;
}

}  // namespace broach::tiles
