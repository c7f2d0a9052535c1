#pragma once

// One (row, query head) of attention in float64: where fp32's output is not finite, so that its
// class (NaN, +infinity, -infinity, finite) is float64's. Off the common path.
//
//   s_j = scale q.k_j (fma chain over the dims), softcap    m = max s_j (and the sink)
//   p_j = exp(s_j - m)    l = sum p_j (and exp(sink - m))    out = round((sum p_j v_j) / l)
//
// Sums run in key order whatever the block's size, so the bits do not depend on it. Keys that the
// row does not see are not read.

#include "common/exp.cuh"
#include "common/half.cuh"
#include "common/ops.cuh"
#include "common/platform.cuh"
#include "common/tanh.cuh"
#include "window_rows/keys.cuh"

namespace broach::window_rows {

constexpr int kRerunKeys = 128;

struct RerunShared {
  double maxima[kRerunKeys];
  double weights[kRerunKeys];
};
constexpr int kRerunSharedBytes = sizeof(RerunShared);

BROACH_DEVICE double score64(const BroachWindowRowsDecode& p, const unsigned short* q,
                             const unsigned short* k) {
  double dot = 0.0;
  BROACH_ROLLED
  for (int d = 0; d < kHeadDim; ++d) {
    dot = fma_rn(static_cast<double>(widen<kHalf>(q[d])), static_cast<double>(widen<kHalf>(k[d])),
                 dot);
  }
  double s = mul_rn(static_cast<double>(p.attention.scale), dot);
  if constexpr (kSoftcap) {
    const double cap = static_cast<double>(p.attention.softcap);
    s = mul_rn(cap, tanh64(div_rn(s, cap)));
  }
  return s;
}

/// Computes query head `head` (of all) of a row again and writes its output.
///
/// Shapes:  q and out [D].
template <int kThreads>
BROACH_DEVICE void rerun_head(Thread thread, const BroachWindowRowsDecode& p,
                              const unsigned short* q, unsigned short* out, int kv_head, int head,
                              int slot, const KeyRange& keys, RerunShared& shared) {
  const int index = static_cast<int>(thread.index());
  const KeyRows rows(p, slot);
  const unsigned short* const k = elements(p.cache.k) + kv_head * p.cache.k_head_stride;
  const unsigned short* const v = elements(p.cache.v) + kv_head * p.cache.v_head_stride;
  const double least = -static_cast<double>(infinity());

  double most = least;
  if (index < kRerunKeys) {
    BROACH_ROLLED
    for (int key = keys.first + index; key <= keys.last; key += kRerunKeys) {
      const double s = score64(p, q, k + rows.k(key));
      if (s > most) most = s;  // a NaN score makes its weight NaN below
    }
    shared.maxima[index] = most;
  }
  sync_block(thread);
  BROACH_ROLLED
  for (int i = 0; i < kRerunKeys; ++i) {
    if (shared.maxima[i] > most) most = shared.maxima[i];
  }
  if constexpr (kSinks) {
    const double sink = static_cast<double>(p.attention.sinks[head]);
    if (sink > most) most = sink;
  }

  constexpr int kValues = (kHeadDim + kThreads - 1) / kThreads;
  double o[kValues] = {};
  double l = 0.0;
  BROACH_ROLLED
  for (int start = keys.first; start <= keys.last; start += kRerunKeys) {
    const int key = start + index;
    if (index < kRerunKeys && key <= keys.last) {
      shared.weights[index] = exp64(sub_rn(score64(p, q, k + rows.k(key)), most));
    }
    sync_block(thread);
    BROACH_ROLLED
    for (int i = 0; i < kRerunKeys && start + i <= keys.last; ++i) {
      const unsigned short* const row = v + rows.v(start + i);
      l = add_rn(l, shared.weights[i]);
      BROACH_UNROLL
      for (int d = 0; d < kValues; ++d) {
        const int dim = d * kThreads + index;
        if (dim < kHeadDim) {
          o[d] = fma_rn(shared.weights[i], static_cast<double>(widen<kHalf>(row[dim])), o[d]);
        }
      }
    }
    sync_block(thread);
  }
  if constexpr (kSinks)
    l = add_rn(l, exp64(sub_rn(static_cast<double>(p.attention.sinks[head]), most)));
  BROACH_UNROLL
  for (int d = 0; d < kValues; ++d) {
    const int dim = d * kThreads + index;
    if (dim < kHeadDim) out[dim] = narrow<kHalf>(div_rn(o[d], l));
  }
}

/// Re-runs the heads first_head .. first_head + heads - 1 of a KV head whose flag is set.
///
/// Shapes:  redo [heads] and scratch (kRerunSharedBytes, 8-byte aligned) in shared memory; the
///          flags were written before a block barrier.
template <int kThreads>
BROACH_DEVICE void redo_heads(Thread thread, const BroachWindowRowsDecode& p, int row, int kv_head,
                              int first_head, int heads, int slot, const KeyRange& keys,
                              const unsigned* redo, unsigned char* scratch) {
  bool any_head = false;
  BROACH_ROLLED
  for (int i = 0; i < heads; ++i) any_head = any_head || redo[i] != 0;
  if (!any_head) return;
  BROACH_ROLLED
  for (int i = 0; i < heads; ++i) {
    if (redo[i] == 0 && kControl != Control::kWholeBlockRerun) continue;
    const int head = kv_head * ratio_of(p) + first_head + i;
    rerun_head<kThreads>(
        thread, p,
        elements(p.attention.q) + row * p.attention.q_row_stride + head * p.attention.q_head_stride,
        elements(p.attention.out) + row * p.attention.out_row_stride +
            head * p.attention.out_head_stride,
        kv_head, head, slot, keys, *reinterpret_cast<RerunShared*>(scratch));
  }
}

}  // namespace broach::window_rows
