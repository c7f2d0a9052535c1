#pragma once

// What the arithmetics made of MMA steps do to a tile besides them: scores, the two forms of P,
// the order of the sum of P, the sink, the quotient. tile64_arith.cuh and mma32_arith.cuh add how a
// tile joins those before it.
//
// sum_order: key 8n + 2c + i of a tile (n from 0, c 0..3, i 0..1) belongs to class c. A class adds
// its pairs q_n = p_(8n+2c) + p_(8n+2c+1) in a chain over n: ((q_0 + q_1) + q_2) ... ; then the
// tile's sum is (class 0 + class 1) + (class 2 + class 3). It is the order in which the lanes of a
// matrix accumulator hold a row's keys. Keys the row does not see add +0, which changes nothing.

#include "common/exp.cuh"
#include "common/half.cuh"
#include "common/ops.cuh"
#include "common/tanh.cuh"
#include "common/warp.cuh"
#include "window_rows/keys.cuh"

namespace broach::window_rows {

/// The score of a key from its dot product.
BROACH_DEVICE float score_of(const BroachWindowRowsDecode& p, float dot) {
  const float s = mul_rn(dot, p.attention.scale);
  if constexpr (kSoftcap) {
    return mul_rn(p.attention.softcap, tanh32(div_rn(s, p.attention.softcap)));
  } else {
    return s;
  }
}

/// P of a key from its score, relative to a maximum.
BROACH_DEVICE float weight_of(float score, float base) {
  const float weight = exp32(sub_rn(score, base));
  return kControl == Control::kWeightRounded ? widen<kHalf>(narrow<kHalf>(weight)) : weight;
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

/// P of two keys, the first in the low halves.
struct WeightPair {
  unsigned high;
  unsigned low;
};

BROACH_DEVICE WeightPair split_weights(float first, float second) {
  WeightPair w{narrow_pair<kHalf>(first, second), 0};
  if constexpr (kP32) {
    if constexpr (kControl != Control::kLowHalfDropped) {
      const auto high_first = static_cast<unsigned short>(w.high & 0xffffu);
      const auto high_second = static_cast<unsigned short>(w.high >> 16);
      w.low = narrow_pair<kHalf>(sub_rn(first, widen<kHalf>(high_first)),
                                 sub_rn(second, widen<kHalf>(high_second)));
    }
  }
  return w;
}

/// One class of a tile's sum, `at` the first pair of its values of P.
BROACH_DEVICE float class_sum(const float* at) {
  float sum = add_rn(at[0], at[1]);
  BROACH_UNROLL
  for (int n = 1; n < kTileKeys / 8; ++n) sum = add_rn(sum, add_rn(at[8 * n], at[8 * n + 1]));
  return sum;
}

/// A tile's sum from the four classes, held by lanes 4i .. 4i + 3; all four get it.
BROACH_DEVICE float join_classes(Thread thread, float sum) {
  sum = add_rn(sum, shuffle_xor(thread, sum, 1));
  return add_rn(sum, shuffle_xor(thread, sum, 2));
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

}  // namespace broach::window_rows
