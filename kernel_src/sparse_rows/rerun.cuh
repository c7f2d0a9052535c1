#pragma once

// One (row, query head) of attention over its selected keys in float64: where fp32's output is not
// finite, so that its class (NaN, +infinity, -infinity, finite) is float64's. Off the common path.
//
//   s_j = scale q.k_j (fma chain over the dims)    m = max s_j
//   p_j = exp(s_j - m)    l = sum p_j              out = round((sum p_j v_j) / l)
//
// Sums run in list order. Keys that the row did not select are not read.

#include "common/exp.cuh"
#include "common/ops.cuh"
#include "sparse_rows/query.cuh"

namespace broach::sparse_rows {

constexpr int kRerunKeys = 128;

struct RerunShared {
  double maxima[kRerunKeys];
  double weights[kRerunKeys];
};

BROACH_DEVICE double score64(const Params& p, const Element* q, const unsigned short* k) {
  double dot = 0.0;
  BROACH_ROLLED
  for (int d = 0; d < kHeadDim; ++d) {
    dot = fma_rn(static_cast<double>(value_of(q[d])), static_cast<double>(widen<kHalf>(k[d])), dot);
  }
  return mul_rn(static_cast<double>(p.attention.scale), dot);
}

/// Computes query head `head` (of all) of a row again and writes its output. Every thread of the
/// block takes part.
template <int kThreads>
BROACH_DEVICE void rerun(Thread thread, const Params& p, const Selection& selection, int row,
                         int kv_head, int head, RerunShared& shared) {
  static_assert(kThreads >= kRerunKeys, "a thread a key");
  const int index = static_cast<int>(thread.index());
  const KvHead cache(p, selection.slot, kv_head);
  const Element* const q = query_at(p, row, head);
  const int length = selection.length();
  const auto score = [&](int i) {
    return score64(p, q, cache.k + k_offset(p, cache.cell(selection.key(i))));
  };

  double most = -static_cast<double>(infinity());
  if (index < kRerunKeys) {
    BROACH_ROLLED
    for (int i = index; i < length; i += kRerunKeys) {
      const double s = score(i);
      if (s > most) most = s;  // A NaN score makes its weight NaN below.
    }
    shared.maxima[index] = most;
  }
  sync_block(thread);
  BROACH_ROLLED
  for (int i = 0; i < kRerunKeys; ++i) {
    if (shared.maxima[i] > most) most = shared.maxima[i];
  }

  constexpr int kValues = (kHeadDim + kThreads - 1) / kThreads;
  double o[kValues] = {};
  double l = 0.0;
  BROACH_ROLLED
  for (int start = 0; start < length; start += kRerunKeys) {
    if (index < kRerunKeys && start + index < length) {
      shared.weights[index] = exp64(sub_rn(score(start + index), most));
    }
    sync_block(thread);
    BROACH_ROLLED
    for (int i = 0; i < kRerunKeys && start + i < length; ++i) {
      const unsigned short* const v = cache.v + v_offset(p, cache.cell(selection.key(start + i)));
      l = add_rn(l, shared.weights[i]);
      BROACH_UNROLL
      for (int n = 0; n < kValues; ++n) {
        const int dim = n * kThreads + index;
        if (dim < kHeadDim) {
          o[n] = fma_rn(shared.weights[i], static_cast<double>(widen<kHalf>(v[dim])), o[n]);
        }
      }
    }
    sync_block(thread);
  }
  BROACH_UNROLL
  for (int n = 0; n < kValues; ++n) {
    const int dim = n * kThreads + index;
    if (dim < kHeadDim) put(out_at(p, row, head) + dim, div_rn(o[n], l));
  }
}

}  // namespace broach::sparse_rows
