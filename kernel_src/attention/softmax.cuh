#pragma once

// The softmax of kernels made of MMA steps over tiles of keys: scores, P and its 16-bit forms, the
// order of the sum of P, the rescale factors, the sink, the quotient.
//
//   s_j  = scale * dot_j, then c tanh(s / c) with a soft cap        p_j = exp(s_j - max)
//   sink : M' = max(M, sink)   a = exp(M - M')   l = l a + exp(sink - M')   o = o a
//   out  = round(o / l)
//
// With the special-function unit's exponential every maximum is in base 2 and the scale is part of
// the exponent: with f = scale log2(e), or log2(e) after a soft cap, x_j = dot_j or the capped s_j,
//
//   max is of fl(x_j f)      p_j = ex2(fma(x_j, f, -max)), +0 for a key the row does not see
//   every other exp(d) is ex2(d), and a sink enters as fl(sink log2(e))
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
#include "common/sfu.cuh"
#include "common/tanh.cuh"
#include "common/warp.cuh"

namespace broach::attention {

/// What the exponentials of a softmax are made of.
enum class Exponential : int {
  kPortable,  ///< common/exp.cuh: every chip's bits.
  kEx2,       ///< common/sfu.cuh: the special-function unit's, whose bits are a chip generation's.
};

/// What the softmax of a kernel is compiled with.
struct SoftmaxConfig {
  Half dtype = Half::kBf16;
  Exponential exponential = Exponential::kPortable;
  bool p32 = false;  ///< P enters P x V as two halves instead of one rounding.
  bool softcap = false;
  bool sinks = false;
  // Planted faults.
  bool p_rounded = false;         ///< P is rounded to 16 bits before anything is made of it.
  bool low_half_dropped = false;  ///< P enters P x V as its high half alone.
  bool sink_left_out = false;     ///< The sink does not join the denominator.
  bool rescale_dropped = false;   ///< Exponentials of the running maximum are left out.

  constexpr bool adds_sink() const { return sinks && !sink_left_out; }
  constexpr bool is_ex2() const { return exponential == Exponential::kEx2; }
};

constexpr float kLog2E = 0x1.715476p+0f;

/// The score of a key from its dot product; x_j with ex2.
template <SoftmaxConfig kConfig>
BROACH_DEVICE float score_of(const broach_attention_rows& attention, float dot) {
  if constexpr (kConfig.softcap) {
    const float s = mul_rn(dot, attention.scale);
    return mul_rn(attention.softcap, tanh32(div_rn(s, attention.softcap)));
  } else if constexpr (kConfig.is_ex2()) {
    return dot;
  } else {
    return mul_rn(dot, attention.scale);
  }
}

/// What scores are multiplied by in the exponent: f with ex2.
template <SoftmaxConfig kConfig>
BROACH_DEVICE float exponent_factor(const broach_attention_rows& attention) {
  if constexpr (!kConfig.is_ex2()) {
    return 1.0f;
  } else if constexpr (kConfig.softcap) {
    return kLog2E;
  } else {
    return mul_rn(attention.scale, kLog2E);
  }
}

/// The same where it may replace the scores: with a factor of 0 the scores become their products
/// with it, which changes no exponent, and the factor 1. Then unseen_score() has no exponent.
template <SoftmaxConfig kConfig>
BROACH_DEVICE float nonzero_factor(const broach_attention_rows& attention) {
  const float factor = exponent_factor<kConfig>(attention);
  return kConfig.is_ex2() && factor == 0.0f ? 1.0f : factor;
}

/// A score whose exponent is -infinity, for a factor that is not 0.
template <SoftmaxConfig kConfig>
BROACH_DEVICE float unseen_score([[maybe_unused]] float factor) {
  return kConfig.is_ex2() ? mul_rn(factor, -infinity()) : -infinity();
}

/// What a score adds to the maximum.
template <SoftmaxConfig kConfig>
BROACH_DEVICE float exponent_of(float score, [[maybe_unused]] float factor) {
  return kConfig.is_ex2() ? mul_rn(score, factor) : score;
}

/// exp(d), or 2^d with ex2, for d <= 0.
template <SoftmaxConfig kConfig>
BROACH_DEVICE float exponential(float d) {
  return kConfig.is_ex2() ? ex2_approx(d) : exp32(d);
}

/// P of a key from its score, relative to a maximum.
template <SoftmaxConfig kConfig>
BROACH_DEVICE float p_of(float score, [[maybe_unused]] float factor, float maximum) {
  const float p = exponential<kConfig>(kConfig.is_ex2() ? fma_rn(score, factor, -maximum)
                                                        : sub_rn(score, maximum));
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
  const TileRescale rescale{
      exponential<kConfig>(sub_rn(maximum, next)),
      kConfig.rescale_dropped ? 1.0f : exponential<kConfig>(sub_rn(tile_maximum, next))};
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
  const OnlineRescale rescale{
      kConfig.rescale_dropped ? 1.0f : exponential<kConfig>(sub_rn(maximum, next))};
  maximum = next;
  return rescale;
}

/// Adds a query head's sink to the denominator; returns what o is multiplied by.
template <SoftmaxConfig kConfig>
BROACH_DEVICE float add_sink(float maximum, float logit, float& sum) {
  const float sink = kConfig.is_ex2() ? mul_rn(logit, kLog2E) : logit;
  const float next = larger(maximum, sink);
  const float rescale = exponential<kConfig>(sub_rn(maximum, next));
  sum = fma_rn(sum, rescale, exponential<kConfig>(sub_rn(sink, next)));
  return rescale;
}

/// o / l, with what the sink multiplies o by.
template <SoftmaxConfig kConfig>
BROACH_DEVICE float normalized(float o, float l, [[maybe_unused]] float sink_rescale) {
  if constexpr (kConfig.adds_sink()) o = mul_rn(o, sink_rescale);
  return div_rn(o, l);
}

}  // namespace broach::attention
