#pragma once

// The softmax of kernels made of MMA steps over tiles of keys: scores, P and its 16-bit forms, the
// order of the sum of P, the rescale factors, the sink, the quotient.
//
//   s_j  = scale * dot_j, then c tanh(s / c) with a soft cap        p_j = exp(s_j - max)
//   sink : M' = max(M, sink)   a = exp(M - M')   l = l a + exp(sink - M')   o = o a
//   out  = round(o / l)
//
// Order of a sum of P: key 8n + 2c + i of a tile (n from 0, c 0..3, i 0..1) belongs to class c. A
// class adds its pairs q_n = p_(8n+2c) + p_(8n+2c+1) in a chain over n: ((q_0 + q_1) + q_2) ... ;
// then the tile's sum is (class 0 + class 1) + (class 2 + class 3). It is the order in which the
// lanes of an accumulator hold a row's keys. Keys the row does not see add +0, which changes
// nothing.

#include "attention/tensors.cuh"
#include "common/exp.cuh"
#include "common/half.cuh"
#include "common/ops.cuh"
#include "common/tanh.cuh"
#include "common/warp.cuh"

namespace broach::attention {

/// What the softmax of a kernel is compiled with.
struct SoftmaxConfig {
  Half dtype = Half::kBf16;
  bool p32 = false;  ///< P enters P x V as two halves instead of one rounding.
  bool softcap = false;
  bool sinks = false;
  // Planted faults.
  bool p_rounded = false;         ///< P is rounded to 16 bits before anything is made of it.
  bool low_half_dropped = false;  ///< P enters P x V as its high half alone.
  bool sink_left_out = false;     ///< The sink does not join the denominator.
  bool rescale_dropped = false;   ///< Exponentials of the running maximum are left out.

  constexpr bool adds_sink() const { return sinks && !sink_left_out; }
};

/// The score of a key from its dot product.
template <SoftmaxConfig kConfig>
BROACH_DEVICE float score_of(const broach_attention_rows& attention, float dot) {
  const float s = mul_rn(dot, attention.scale);
  if constexpr (kConfig.softcap) {
    return mul_rn(attention.softcap, tanh32(div_rn(s, attention.softcap)));
  } else {
    return s;
  }
}

/// P of a key from its score, relative to a maximum.
template <SoftmaxConfig kConfig>
BROACH_DEVICE float p_of(float score, float maximum) {
  const float p = exp32(sub_rn(score, maximum));
  return kConfig.p_rounded ? widen<kConfig.dtype>(narrow<kConfig.dtype>(p)) : p;
}

/// P as it enters P x V: one rounding, or two halves whose sum is P to 2^-16 (bf16) relative.
struct SplitP {
  unsigned short high;
  unsigned short low;
};

template <SoftmaxConfig kConfig>
BROACH_DEVICE SplitP split_p(float p) {
  SplitP split{narrow<kConfig.dtype>(p), 0};
  if constexpr (kConfig.p32 && !kConfig.low_half_dropped) {
    split.low = narrow<kConfig.dtype>(sub_rn(p, widen<kConfig.dtype>(split.high)));
  }
  return split;
}

/// P of two keys, the first in the low halves.
struct SplitPPair {
  unsigned high;
  unsigned low;
};

template <SoftmaxConfig kConfig>
BROACH_DEVICE SplitPPair split_p_pair(float first, float second) {
  SplitPPair split{narrow_pair<kConfig.dtype>(first, second), 0};
  if constexpr (kConfig.p32 && !kConfig.low_half_dropped) {
    const auto high_first = static_cast<unsigned short>(split.high & 0xffffu);
    const auto high_second = static_cast<unsigned short>(split.high >> 16);
    split.low = narrow_pair<kConfig.dtype>(sub_rn(first, widen<kConfig.dtype>(high_first)),
                                           sub_rn(second, widen<kConfig.dtype>(high_second)));
  }
  return split;
}

/// One class of a tile's sum, `p` the first pair of its values.
template <int kTileKeys>
BROACH_DEVICE float class_sum(const float* p) {
  float sum = add_rn(p[0], p[1]);
  BROACH_UNROLL
  for (int n = 1; n < kTileKeys / 8; ++n) sum = add_rn(sum, add_rn(p[8 * n], p[8 * n + 1]));
  return sum;
}

/// A tile's sum from the four classes, held by lanes 4i .. 4i + 3; all four get it.
BROACH_DEVICE float sum_of_classes(Thread thread, float sum) {
  sum = add_rn(sum, shuffle_xor(thread, sum, 1));
  return add_rn(sum, shuffle_xor(thread, sum, 2));
}

/// How a tile of arith=tile64 joins the running sums. Its P is relative to its own maximum m_t:
///
///   M' = max(M, m_t)   a = exp(M - M')   b = exp(m_t - M')   l = l a + l_t b   o = o a + pv_t b
struct TileRescale {
  float running;  ///< a
  float tile;     ///< b

  BROACH_DEVICE float apply(float sum, float of_tile) const {
    return fma_rn(sum, running, mul_rn(of_tile, tile));
  }
};

/// Moves the running maximum to include a tile's.
template <SoftmaxConfig kConfig>
BROACH_DEVICE TileRescale tile_rescale(float& maximum, float tile_maximum) {
  const float next = larger(maximum, tile_maximum);
  const TileRescale rescale{exp32(sub_rn(maximum, next)),
                            kConfig.rescale_dropped ? 1.0f : exp32(sub_rn(tile_maximum, next))};
  maximum = next;
  return rescale;
}

/// How a tile of an online softmax joins the running sums. Its P is relative to the running maximum
/// that includes its own:
///
///   m' = max(m, m_t)   a = exp(m - m')   l = l a + l_t   o = o a + pv_t
struct OnlineRescale {
  float running;  ///< a

  BROACH_DEVICE float apply(float sum, float of_tile) const {
    return fma_rn(sum, running, of_tile);
  }
};

template <SoftmaxConfig kConfig>
BROACH_DEVICE OnlineRescale online_rescale(float& maximum, float tile_maximum) {
  const float next = larger(maximum, tile_maximum);
  const OnlineRescale rescale{kConfig.rescale_dropped ? 1.0f : exp32(sub_rn(maximum, next))};
  maximum = next;
  return rescale;
}

/// Adds a query head's sink to the denominator; returns what o is multiplied by.
BROACH_DEVICE float add_sink(float maximum, float sink, float& sum) {
  const float next = larger(maximum, sink);
  const float rescale = exp32(sub_rn(maximum, next));
  sum = fma_rn(sum, rescale, exp32(sub_rn(sink, next)));
  return rescale;
}

/// o / l, with what the sink multiplies o by.
template <SoftmaxConfig kConfig>
BROACH_DEVICE float normalized(float o, float l, [[maybe_unused]] float sink_rescale) {
  if constexpr (kConfig.adds_sink()) o = mul_rn(o, sink_rescale);
  return div_rn(o, l);
}

}  // namespace broach::attention
