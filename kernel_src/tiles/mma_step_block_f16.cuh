#pragma once

// One m16n8k16 step with an f16 accumulator (sm_90's) for a whole fragment, eight columns at a
// time: the host form of mma.sync's f16 form. Bit for bit fused_step_f16 of mma_step_model.cuh,
// which it calls for outputs that hold a NaN, an infinity or sums far below f16's least unit.
//
// Layout: a [16][16] row-major (m, k); b [16][8] row-major (k, n); c [16][8] f16 bits, in place.

#include "tiles/mma_step_block.cuh"

namespace broach::tiles {

/// f16 bits of magnitude * 2^unit with its sign, to nearest even; `far` marks the lanes left out.
inline void round_lanes_to_f16(const Lanes& sign, const UnsignedLanes& magnitude, const Lanes& unit,
                               Lanes& bits, Lanes& far) {
  // The highest set bit, as in truncate_lanes_to_f32.
  Lanes upper = Lanes(magnitude >> 1);
  upper &= ~(upper >> 1);
  const auto as_float = __builtin_convertvector(upper, FloatLanes);
  const Lanes high = upper == 0 ? Lanes{} : (Lanes(as_float) >> 23) - 126;
  const Lanes exponent = high + unit;
  const Lanes subnormal = exponent < -14;
  const Lanes shift = (subnormal ? Lanes{} - 24 : exponent - 10) - unit;
  far = shift > 31;
  const Lanes right = shift > 0 ? (shift < 31 ? shift : Lanes{} + 31) : Lanes{};
  const Lanes left = shift < 0 ? -shift : Lanes{};
  const UnsignedLanes kept = (magnitude >> UnsignedLanes(right)) << UnsignedLanes(left);
  const UnsignedLanes one = UnsignedLanes{} + 1U;
  const UnsignedLanes rest = magnitude & ((one << UnsignedLanes(right)) - 1U);
  // No bit is left over without a shift to the right: `half` is then above every rest.
  const UnsignedLanes half = right > 0 ? one << UnsignedLanes(right - 1) : UnsignedLanes{} + ~0U;
  const Lanes up = (rest > half) | ((rest == half) & -Lanes(kept & 1U));
  const Lanes field = subnormal ? Lanes{} : exponent + 14;
  // A true lane is -1. A carry out of the fraction moves into the exponent.
  const Lanes rounded = (field << 10) + Lanes(kept) - up;
  const Lanes finite = (exponent > 15) | (rounded >= 0x7C00) ? Lanes{} + 0x7C00 : rounded;
  bits = Lanes(magnitude) == 0 ? Lanes{} : finite | (sign & 0x8000);
}

/// c = a * b + c with f16 operands and results.
inline void mma_step_block_f16(const unsigned short (&a)[16][16], const unsigned short (&b)[16][8],
                               unsigned short (&c)[16][8]) {
  constexpr int kAlign = OneK16::kAlignBits;
  constexpr int kFraction = F16Format::kFractionBits;
  LaneParts columns[16];
  Lanes special_columns{};
  for (int k = 0; k < 16; ++k) {
    Lanes bits{};
    for (int n = 0; n < 8; ++n) bits[n] = b[k][n];
    take_lanes_apart<F16Format>(bits, columns[k]);
    special_columns |= columns[k].special;
  }
  for (int m = 0; m < 16; ++m) {
    Parts row[16];
    bool row_special = false;
    for (int k = 0; k < 16; ++k) {
      row[k] = take_apart<F16Format>(a[m][k]);
      row_special |= row[k].special;
    }
    Lanes bits{};
    for (int n = 0; n < 8; ++n) bits[n] = c[m][n];
    LaneParts acc;
    take_lanes_apart<F16Format>(bits, acc);
    Lanes top = acc.exponent > kLeastTop ? acc.exponent : Lanes{} + kLeastTop;
    for (int k = 0; k < 16; ++k) {
      const Lanes exponent = columns[k].exponent + row[k].exponent;
      top = exponent > top ? exponent : top;
    }
    Lanes products{};
    for (int k = 0; k < 16; ++k) {
      const Lanes drop = top - columns[k].exponent - row[k].exponent;
      const int factor = static_cast<int>(row[k].significand << (kAlign - 2 * kFraction));
      const Lanes term = (columns[k].significand * factor) >> (drop < 31 ? drop : Lanes{} + 31);
      const Lanes sign = columns[k].sign ^ -static_cast<int>(row[k].negative);
      products += (term ^ sign) - sign;
    }
    const Lanes drop = top - acc.exponent;
    const Lanes kept =
        (acc.significand << (kAlign - kFraction)) >> (drop < 31 ? drop : Lanes{} + 31);
    const Lanes addend = (kept ^ acc.sign) - acc.sign;
    // 33 bits with the sign, as in mma_step_block.
    const Lanes sum = Lanes(UnsignedLanes(products) + UnsignedLanes(addend));
    const Lanes wrapped = (~(products ^ addend) & (products ^ sum)) >> 31;
    const Lanes sign = (sum >> 31) ^ wrapped;
    const UnsignedLanes magnitude =
        (UnsignedLanes(sum) ^ UnsignedLanes(sign)) - UnsignedLanes(sign);
    Lanes result;
    Lanes far;
    round_lanes_to_f16(sign, magnitude, top - kAlign, result, far);
    const unsigned slow = row_special ? 0xFFU : mask_of(special_columns | acc.special | far);
    for (int n = 0; n < 8; ++n) {
      c[m][n] = (slow >> n) & 1U ? fused_step_f16<F16Format>(a[m], 1, &b[0][n], 8, c[m][n])
                                 : static_cast<unsigned short>(result[n]);
    }
  }
}

}  // namespace broach::tiles
