#pragma once

// One (row, query head) of attention in float64: where fp32's output is not finite, so that its
// class (NaN, +infinity, -infinity, finite) is float64's. Off the common path.
//
//   s_j = scale q.k_j (fma chain over the dims), softcap    m = max s_j (and the sink)
//   p_j = exp(s_j - m)    l = sum p_j (and exp(sink - m))    out = round((sum p_j v_j) / l)
//
// Sums run in key order whatever the block's size, so the bits do not depend on it. Keys that the
// row does not see are not read.

#include "attention/softmax.cuh"
#include "attention/tensors.cuh"
#include "common/exp.cuh"
#include "common/half.cuh"
#include "common/ops.cuh"
#include "common/platform.cuh"
#include "common/tanh.cuh"

namespace broach::attention {

constexpr int kFloat64Keys = 128;

struct Float64Shared {
  double maxima[kFloat64Keys];
  double p[kFloat64Keys];
};

template <SoftmaxConfig kConfig, int kHeadDim>
BROACH_DEVICE double score64(const broach_attention_rows& attention, const unsigned short* q,
                             const unsigned short* k) {
  double dot = 0.0;
  BROACH_ROLLED
  for (int d = 0; d < kHeadDim; ++d) {
    dot = fma_rn(static_cast<double>(widen<kConfig.dtype>(q[d])),
                 static_cast<double>(widen<kConfig.dtype>(k[d])), dot);
  }
  double s = mul_rn(static_cast<double>(attention.scale), dot);
  if constexpr (kConfig.softcap) {
    const double cap = static_cast<double>(attention.softcap);
    s = mul_rn(cap, tanh64(div_rn(s, cap)));
  }
  return s;
}

/// Computes query head `head` (of all) of `row` again and writes its output. Every thread of a
/// block of kThreads takes part, kFloat64Keys or more.
///
/// Shapes:  `Kv` gives the keys' and values' addresses, k(key) and v(key); `Keys` lists those that
///          the row sees, in ascending order: count() of them, the i-th at(i).
template <SoftmaxConfig kConfig, int kHeadDim, int kThreads, class Kv, class Keys>
BROACH_DEVICE void recompute_in_float64(Thread thread, const broach_attention_rows& attention,
                                        const Kv& kv, const Keys& keys, int row, int head,
                                        Float64Shared& shared) {
  static_assert(kThreads >= kFloat64Keys, "a thread a key");
  const int index = static_cast<int>(thread.index());
  const unsigned short* const q =
      elements(attention.q) + row * attention.q_row_stride + head * attention.q_head_stride;
  unsigned short* const out =
      elements(attention.out) + row * attention.out_row_stride + head * attention.out_head_stride;
  const double least = -static_cast<double>(infinity());

  double most = least;
  if (index < kFloat64Keys) {
    BROACH_ROLLED
    for (int i = index; i < keys.count(); i += kFloat64Keys) {
      const double s = score64<kConfig, kHeadDim>(attention, q, kv.k(keys.at(i)));
      if (s > most) most = s;  // A NaN score makes its p NaN below.
    }
    shared.maxima[index] = most;
  }
  sync_block(thread);
  BROACH_ROLLED
  for (int i = 0; i < kFloat64Keys; ++i) {
    if (shared.maxima[i] > most) most = shared.maxima[i];
  }
  if constexpr (kConfig.sinks) {
    const double sink = static_cast<double>(attention.sinks[head]);
    if (sink > most) most = sink;
  }

  constexpr int kValues = (kHeadDim + kThreads - 1) / kThreads;
  double o[static_cast<unsigned>(kValues)] = {};
  double l = 0.0;
  BROACH_ROLLED
  for (int start = 0; start < keys.count(); start += kFloat64Keys) {
    if (index < kFloat64Keys && start + index < keys.count()) {
      const double s = score64<kConfig, kHeadDim>(attention, q, kv.k(keys.at(start + index)));
      shared.p[index] = exp64(sub_rn(s, most));
    }
    sync_block(thread);
    BROACH_ROLLED
    for (int i = 0; i < kFloat64Keys && start + i < keys.count(); ++i) {
      const unsigned short* const v = kv.v(keys.at(start + i));
      l = add_rn(l, shared.p[i]);
      BROACH_UNROLL
      for (int d = 0; d < kValues; ++d) {
        const int dim = d * kThreads + index;
        if (dim < kHeadDim) {
          o[d] = fma_rn(shared.p[i], static_cast<double>(widen<kConfig.dtype>(v[dim])), o[d]);
        }
      }
    }
    sync_block(thread);
  }
  if constexpr (kConfig.sinks) {
    l = add_rn(l, exp64(sub_rn(static_cast<double>(attention.sinks[head]), most)));
  }
  BROACH_UNROLL
  for (int d = 0; d < kValues; ++d) {
    const int dim = d * kThreads + index;
    if (dim < kHeadDim) out[dim] = narrow<kConfig.dtype>(div_rn(o[d], l));
  }
}

}  // namespace broach::attention
