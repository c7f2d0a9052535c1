#pragma once

// One (row, query head) in float64, where its fp32 output is not finite: then its class (NaN, +inf,
// -inf, finite) is float64's. Off the common path.
//
//   s_j = scale q.k_j (an fma chain over the dims), softcap       M = max s_j, and the sink
//   p_j = exp(s_j - M)   l = sum p_j, exp(sink - M) last          out = round(sum p_j v_j / l)
//
// Sums in key order, the one rounding to 16 bits straight from float64. Unseen keys are not read.

#include "common/exp.cuh"
#include "common/half.cuh"
#include "common/tanh.cuh"
#include "window_rows/chunk256_keys.cuh"

namespace broach::chunk256 {

struct RerunShared {
  double maxima[kMergeThreads];
  double weights[kMergeThreads];
};

/// The larger of two numbers; of a number and a NaN, the number.
BROACH_DEVICE double larger64(double a, double b) { return a >= b || b != b ? a : b; }

BROACH_DEVICE double score64(const Params& params, const unsigned short* q,
                             const unsigned short* k) {
  double dot = 0.0;
  for (int d = 0; d < kHeadDim; ++d) {
    dot = fma_rn(static_cast<double>(widen<kDtype>(q[d])), static_cast<double>(widen<kDtype>(k[d])),
                 dot);
  }
  double s = mul_rn(static_cast<double>(params.attention.scale), dot);
  if constexpr (kSoftcap) {
    const double cap = static_cast<double>(params.attention.softcap);
    s = mul_rn(cap, tanh64(div_rn(s, cap)));
  }
  return s;
}

BROACH_DEVICE void rerun(Thread thread, const Params& params, const RowKeys& keys, int row,
                         int kv_head, int head, RerunShared& shared) {
  const int index = static_cast<int>(thread.index());
  const unsigned short* const q = elements(params.attention.q) +
                                  row * params.attention.q_row_stride +
                                  head * params.attention.q_head_stride;

  double m = -static_cast<double>(infinity());
  for (int key = keys.first + index; key <= keys.last; key += kMergeThreads) {
    m = larger64(m, score64(params, q, k_rows(params, keys, key, kv_head).at(key)));
  }
  shared.maxima[index] = m;
  sync_block(thread);
  for (int i = 0; i < kMergeThreads; ++i) m = larger64(m, shared.maxima[i]);
  const bool sink_joins = kSinks && kControl != Control::kSinkLeftOut;
  const double sink = sink_joins ? static_cast<double>(params.attention.sinks[head]) : 0.0;
  if (sink_joins) m = larger64(m, sink);

  constexpr int kValues = (kHeadDim + kMergeThreads - 1) / kMergeThreads;
  double o[kValues] = {};
  double l = 0.0;
  for (int start = keys.first; start <= keys.last; start += kMergeThreads) {
    const int key = start + index;
    if (key <= keys.last) {
      const double s = score64(params, q, k_rows(params, keys, key, kv_head).at(key));
      shared.weights[index] = exp64(sub_rn(s, m));
    }
    sync_block(thread);
    for (int i = 0; i < kMergeThreads && start + i <= keys.last; ++i) {
      const unsigned short* const v = v_rows(params, keys, start + i, kv_head).at(start + i);
      l = add_rn(l, shared.weights[i]);
      BROACH_UNROLL
      for (int n = 0; n < kValues; ++n) {
        const int dim = n * kMergeThreads + index;
        if (dim < kHeadDim) {
          o[n] = fma_rn(shared.weights[i], static_cast<double>(widen<kDtype>(v[dim])), o[n]);
        }
      }
    }
    sync_block(thread);
  }
  if (sink_joins) l = add_rn(l, exp64(sub_rn(sink, m)));
  unsigned short* const out = elements(params.attention.out) +
                              row * params.attention.out_row_stride +
                              head * params.attention.out_head_stride;
  BROACH_UNROLL
  for (int n = 0; n < kValues; ++n) {
    const int dim = n * kMergeThreads + index;
    if (dim < kHeadDim) out[dim] = narrow<kDtype>(div_rn(o[n], l));
  }
}

}  // namespace broach::chunk256
