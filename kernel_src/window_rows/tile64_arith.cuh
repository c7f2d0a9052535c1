#pragma once

// The arithmetic of tile64, step by step: what every form of the family shares, and all that fixes
// its bits besides the matrix steps. docs/numerics.md words the same.
//
//   s_j   = scale * (chain of k16 matrix steps over the dims, from 0), then c tanh(s / c)
//   m_t   = max_j s_j          p_j = exp(s_j - m_t)          l_t = sum of p_j, see sum_order below
//   pv_t  = chain of k16 matrix steps over the tile's keys, from 0; with p32 each step hi, then lo
//   M' = max(M, m_t)   a = exp(M - M')   b = exp(m_t - M')   l = l a + l_t b   o = o a + pv_t b
//   sink: M' = max(M, sink)   a = exp(M - M')   l = l a + exp(sink - M')   o = o a
//   out = round(o / l)
//
// sum_order: key 8n + 2c + i (n 0..7, c 0..3, i 0..1) belongs to class c. A class adds its pairs
// q_n = p_(8n+2c) + p_(8n+2c+1) in a chain over n: ((q_0 + q_1) + q_2) ... ; then
// l_t = (class 0 + class 1) + (class 2 + class 3). It is the order in which the lanes of a matrix
// accumulator hold a row's keys. Keys the row does not see add +0, which changes nothing.

#include "common/exp.cuh"
#include "common/half.cuh"
#include "common/ops.cuh"
#include "common/tanh.cuh"
#include "common/warp.cuh"
#include "window_rows/tile64_keys.cuh"

namespace broach::tile64 {

/// The score of a key from its dot product.
BROACH_DEVICE float score_of(const BroachWindowRowsDecode& p, float dot) {
  const float s = mul_rn(dot, p.scale);
  if constexpr (kSoftcap) {
    return mul_rn(p.softcap, tanh32(div_rn(s, p.softcap)));
  } else {
    return s;
  }
}

/// P as it enters P x V: one rounding, or two halves whose sum is P to 2^-16 (bf16) relative.
struct Weight {
  unsigned short high;
  unsigned short low;
};

BROACH_DEVICE Weight split_weight(float p) {
  Weight w{narrow<kHalf>(p), 0};
  if constexpr (kP32) {
    if constexpr (kControl != Control::kLowHalfDropped) {
      w.low = narrow<kHalf>(sub_rn(p, widen<kHalf>(w.high)));
    }
  }
  return w;
}

/// What a tile's join does to the running sums: l = l keep + l_t take, o = o keep + pv_t take.
struct Fold {
  float keep;
  float take;

  BROACH_DEVICE float join(float sum, float part) const {
    return fma_rn(sum, keep, mul_rn(part, take));
  }
};

/// Moves the running maximum to include a tile's.
BROACH_DEVICE Fold fold_factors(float& maximum, float tile_maximum) {
  const float next = larger(maximum, tile_maximum);
  const Fold fold{exp32(sub_rn(maximum, next)),
                  kControl == Control::kFoldUnscaled ? 1.0f : exp32(sub_rn(tile_maximum, next))};
  maximum = next;
  return fold;
}

/// Lets a query head's sink join the denominator; returns what o is multiplied by.
BROACH_DEVICE float join_sink(float maximum, float sink, float& sum) {
  const float next = larger(maximum, sink);
  const float keep = exp32(sub_rn(maximum, next));
  sum = fma_rn(sum, keep, exp32(sub_rn(sink, next)));
  return keep;
}

constexpr bool kJoinsSink = kSinks && kControl != Control::kSinkLeftOut;

/// o / l, with what the sink multiplies o by.
BROACH_DEVICE float finished(float o, float l, [[maybe_unused]] float keep) {
  if constexpr (kJoinsSink) o = mul_rn(o, keep);
  return div_rn(o, l);
}

/// One class of l_t: 16 of a tile's 64 values of P, `at` its first pair.
BROACH_DEVICE float class_sum(const float* at) {
  float sum = add_rn(at[0], at[1]);
  BROACH_UNROLL
  for (int n = 1; n < kTileKeys / 8; ++n) sum = add_rn(sum, add_rn(at[8 * n], at[8 * n + 1]));
  return sum;
}

/// l_t from the four classes, held by lanes 4i .. 4i + 3; all four get it.
BROACH_DEVICE float join_classes(Thread thread, float sum) {
  sum = add_rn(sum, shuffle_xor(thread, sum, 1));
  return add_rn(sum, shuffle_xor(thread, sum, 2));
}

}  // namespace broach::tile64
