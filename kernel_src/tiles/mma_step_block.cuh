#pragma once

// One m16n8k16 step of the model for a whole fragment, eight columns at a time: the host form of
// mma.sync. Bit for bit mma_step_model.cuh, which it calls for the rows and columns that hold a
// NaN or an infinity.
//
// Layout: a [16][16] row-major (m, k); b [16][8] row-major (k, n); c [16][8] fp32 bits, in place.
// The eight columns are one vector of 32-bit lanes: a product shifted onto the grid has at most
// 27 bits and sixteen of them stay below 2^31 (2047^2 * 2^5 * 16 = 2^31 - 2^21.9), so the sum of
// the products needs no wider lane.

#include "tiles/mma_step_model.cuh"

namespace broach::tiles {

using Lanes = int __attribute__((vector_size(32)));
using UnsignedLanes = unsigned __attribute__((vector_size(32)));
using FloatLanes = float __attribute__((vector_size(32)));

/// Eight values taken apart, as Parts.
struct LaneParts {
  Lanes significand;
  Lanes exponent;
  Lanes sign;     ///< All ones where negative.
  Lanes special;  ///< All ones where infinite or NaN.
};

template <class Format>
inline void take_lanes_apart(const Lanes& bits, LaneParts& out) {
  constexpr int kTop = (1 << Format::kExponentBits) - 1;
  constexpr int kHidden = 1 << Format::kFractionBits;
  const Lanes field = (bits >> Format::kFractionBits) & kTop;
  const Lanes subnormal = field == 0;
  out.significand = (bits & (kHidden - 1)) | (~subnormal & kHidden);
  // A true lane is -1, so subtracting it gives a subnormal the exponent 1 - bias.
  out.exponent = out.significand == 0 ? Lanes{} + kZeroExponent : field - (kTop >> 1) - subnormal;
  out.sign = -((bits >> (Format::kFractionBits + Format::kExponentBits)) & 1);
  out.special = field == kTop;
}

/// One bit a lane, lane 0 lowest, of lanes that are all ones or zero.
inline unsigned mask_of(const Lanes& lanes) {
  unsigned mask = 0;
  for (int n = 0; n < 8; ++n) mask |= static_cast<unsigned>(lanes[n] & 1) << n;
  return mask;
}

/// fp32 bits of sum * 2^unit truncated toward zero, the sum given as sign and 32-bit magnitude.
inline void truncate_lanes_to_f32(const Lanes& sign, const UnsignedLanes& magnitude,
                                  const Lanes& unit, Lanes& bits) {
  // The highest set bit is the exponent of the value's upper half as a float. Clearing every bit
  // below a set bit's neighbour keeps the leading bit and makes the second one zero, so that the
  // conversion's own rounding cannot carry into the exponent.
  Lanes upper = Lanes(magnitude >> 1);
  upper &= ~(upper >> 1);
  const auto as_float = __builtin_convertvector(upper, FloatLanes);
  const Lanes high = upper == 0 ? Lanes{} : (Lanes(as_float) >> 23) - 126;
  const Lanes exponent = high + unit;
  const UnsignedLanes significand = (magnitude << UnsignedLanes(31 - high)) >> 8;
  const Lanes below = -126 - exponent;
  const Lanes subnormal_shift = below < 31 ? below : Lanes{} + 31;
  const Lanes subnormal = Lanes(significand) >> (below > 0 ? subnormal_shift : Lanes{});
  const Lanes normal = ((exponent + 127) << 23) | (Lanes(significand) & 0x7FFFFF);
  const Lanes overflow = Lanes{} + 0x7F800000;
  const Lanes finite = below > 0 ? subnormal : normal;
  const Lanes unsigned_bits = exponent > 127 ? overflow : finite;
  // A sum truncated to nothing is +0.
  const Lanes zero = (Lanes(magnitude) == 0) | (unsigned_bits == 0);
  bits = ~zero & (unsigned_bits | (sign & static_cast<int>(0x80000000U)));
}

/// c += a * b by the step of sm_90 (OneK16) or of sm_80 to sm_89 (TwoK8).
template <class In, class Step>
inline void mma_step_block(const unsigned short (&a)[16][16], const unsigned short (&b)[16][8],
                           unsigned (&c)[16][8]) {
  constexpr int kShift = Step::kAlignBits - 2 * In::kFractionBits;
  constexpr int kAccumulatorShift = Step::kAlignBits - F32Format::kFractionBits;
  LaneParts columns[16];
  Lanes special_columns{};
  for (int k = 0; k < 16; ++k) {
    Lanes bits{};
    for (int n = 0; n < 8; ++n) bits[n] = b[k][n];
    take_lanes_apart<In>(bits, columns[k]);
    special_columns |= columns[k].special;
  }
  for (int m = 0; m < 16; ++m) {
    Parts row[16];
    bool row_special = false;
    for (int k = 0; k < 16; ++k) {
      row[k] = take_apart<In>(a[m][k]);
      row_special |= row[k].special;
    }
    for (int first = 0; first < 16; first += Step::kTerms) {
      Lanes bits{};
      for (int n = 0; n < 8; ++n) bits[n] = static_cast<int>(c[m][n]);
      LaneParts acc;
      take_lanes_apart<F32Format>(bits, acc);
      Lanes top = acc.exponent > kLeastTop ? acc.exponent : Lanes{} + kLeastTop;
      for (int k = first; k < first + Step::kTerms; ++k) {
        const Lanes exponent = columns[k].exponent + row[k].exponent;
        top = exponent > top ? exponent : top;
      }
      Lanes products{};
      for (int k = first; k < first + Step::kTerms; ++k) {
        // A shift of 27 or more leaves nothing; 31 keeps it defined. A zero product's exponent is
        // at most kZeroExponent + 127, so it takes no part in the maximum.
        const Lanes drop = top - columns[k].exponent - row[k].exponent;
        const Lanes bounded = drop < 31 ? drop : Lanes{} + 31;
        const Lanes term =
            (columns[k].significand * static_cast<int>(row[k].significand << kShift)) >> bounded;
        const Lanes sign = columns[k].sign ^ -static_cast<int>(row[k].negative);
        products += (term ^ sign) - sign;
      }
      const Lanes drop = top - acc.exponent;
      const Lanes kept =
          (acc.significand << kAccumulatorShift) >> (drop < 31 ? drop : Lanes{} + 31);
      const Lanes addend = (kept ^ acc.sign) - acc.sign;
      // The sum needs 33 bits with its sign: where the lane's addition wrapped, the sign is the
      // operands' and the magnitude still fits 32 bits.
      const Lanes sum = Lanes(UnsignedLanes(products) + UnsignedLanes(addend));
      const Lanes wrapped = (~(products ^ addend) & (products ^ sum)) >> 31;
      const Lanes sign = (sum >> 31) ^ wrapped;
      const UnsignedLanes magnitude =
          (UnsignedLanes(sum) ^ UnsignedLanes(sign)) - UnsignedLanes(sign);
      Lanes result;
      truncate_lanes_to_f32(sign, magnitude, top - Step::kAlignBits, result);
      const unsigned special = row_special ? 0xFFU : mask_of(special_columns | acc.special);
      for (int n = 0; n < 8; ++n) {
        c[m][n] = (special >> n) & 1U ? fused_step<In, Step::kTerms, Step::kAlignBits>(
                                            &a[m][first], 1, &b[first][n], 8, c[m][n])
                                      : static_cast<unsigned>(result[n]);
      }
    }
  }
}

}  // namespace broach::tiles
