#pragma once

// One (row, query head): arithmetic chunk256 step 4 (docs/numerics.md), and the float64 re-run.
//
// Block: 128 threads, each a dim in 128. grid = (kv_heads * gqa_ratio, rows, 1).

#include "common/exp.cuh"
#include "common/half.cuh"
#include "common/warp.cuh"
#include "window_rows/chunk256_partials.cuh"
#include "window_rows/chunk256_rerun.cuh"

namespace broach::chunk256 {

struct MergeShared {
  float scales[kMergeThreads];  // exp(m_c - M) of as many chunks at a time.
  float sums[kMergeThreads];    // Their l_c.
  float maxima[kMergeThreads / 32];
  unsigned rerun[kMergeThreads / 32];
  RerunShared rerun64;
};

constexpr int kMergeValues = (kHeadDim + kMergeThreads - 1) / kMergeThreads;

/// M: the largest of the chunks' maxima, and the sink.
BROACH_DEVICE float merge_maximum(Thread thread, const float* m, int chunks, bool sink_joins,
                                  float sink, MergeShared& shared) {
  float most = -infinity();
  for (int c = static_cast<int>(thread.index()); c < chunks; c += kMergeThreads) {
    most = larger(most, m[c]);
  }
  most = max_warp(thread, most);
  if (thread.lane() == 0) shared.maxima[thread.warp()] = most;
  sync_block(thread);
  BROACH_UNROLL
  for (int w = 0; w < kMergeThreads / 32; ++w) most = larger(most, shared.maxima[w]);
  return sink_joins ? larger(most, sink) : most;
}

BROACH_DEVICE unsigned short rounded(float value) {
  unsigned short bits = narrow<kDtype>(value);
  if constexpr (kControl == Control::kMergeTowardZero) {
    const float away = float_of(bits_of(widen<kDtype>(bits)) & 0x7fffffffu);
    if (away > float_of(bits_of(value) & 0x7fffffffu)) bits = static_cast<unsigned short>(bits - 1);
  }
  return bits;
}

/// Whether the planted fault takes an output for one that needs float64: a partial of the KV head's
/// query heads in the rows beside it, or in its own, is not finite.
BROACH_DEVICE bool neighbour_is_bad(Thread thread, const Params& params, const Partials& partials,
                                    int row, int kv_head) {
  bool bad = false;
  for (int other = max_of(row - 1, 0); other <= min_of(row + 1, params.attention.rows - 1);
       ++other) {
    const int chunks = keys_of_row(thread, params, other).chunks();
    for (int h = 0; h < ratio_of(params); ++h) {
      const long long first = first_partial(params, other, kv_head * ratio_of(params) + h);
      for (int c = 0; c < chunks; ++c) bad = bad || !is_finite(partials.l[first + c]);
    }
  }
  return bad;
}

BROACH_GLOBAL(broach_window_rows_merge, kMergeThreads, Params, MergeShared) {
  const int head = static_cast<int>(thread.block_x());
  const int row = static_cast<int>(thread.block_y());
  const int index = static_cast<int>(thread.index());
  const RowKeys keys = keys_of_row(thread, params, row);
  const int chunks =
      kControl == Control::kWindowEarly ? min_of(keys.chunks(), params.max_chunks) : keys.chunks();
  const Partials partials(params);
  const long long first = first_partial(params, row, head);
  const bool sink_joins = kSinks && kControl != Control::kSinkLeftOut;
  const float sink = sink_joins ? params.attention.sinks[head] : 0.0f;
  const float m = merge_maximum(thread, partials.m + first, chunks, sink_joins, sink, shared);

  float o[kMergeValues] = {};
  float l = 0.0f;
  for (int start = 0; start < chunks; start += kMergeThreads) {
    const int count = min_of(kMergeThreads, chunks - start);
    if (index < count) {
      const float scale = exp32(sub_rn(partials.m[first + start + index], m));
      shared.scales[index] = kControl == Control::kMergeUnscaled ? 1.0f : scale;
      shared.sums[index] = partials.l[first + start + index];
    }
    sync_block(thread);
    const float* const chunk_o = partials.o + (first + start) * kHeadDim;
#if !defined(BROACH_HOST)
#pragma unroll 4
#endif
    for (int c = 0; c < count; ++c) {
      l = fma_rn(shared.scales[c], shared.sums[c], l);
      BROACH_UNROLL
      for (int n = 0; n < kMergeValues; ++n) {
        const int dim = n * kMergeThreads + index;
        if (dim < kHeadDim) o[n] = fma_rn(shared.scales[c], chunk_o[c * kHeadDim + dim], o[n]);
      }
    }
    sync_block(thread);
  }
  if (sink_joins) l = add_rn(l, exp32(sub_rn(sink, m)));

  unsigned short bits[kMergeValues];
  bool finite = true;
  BROACH_UNROLL
  for (int n = 0; n < kMergeValues; ++n) {
    bits[n] = rounded(div_rn(o[n], l));
    if (n * kMergeThreads + index < kHeadDim) finite = finite && is_finite_half<kDtype>(bits[n]);
  }
  if constexpr (kControl == Control::kWholeBlockRerun) {
    finite = finite && !neighbour_is_bad(thread, params, partials, row, head / ratio_of(params));
  }
  const unsigned lost = ballot(thread, !finite);
  if (thread.lane() == 0) shared.rerun[thread.warp()] = lost;
  sync_block(thread);
  bool again = false;
  BROACH_UNROLL
  for (int w = 0; w < kMergeThreads / 32; ++w) again = again || shared.rerun[w] != 0;
  if (again && kControl != Control::kRerunDropped) {
    rerun(thread, params, keys, row, head / ratio_of(params), head, shared.rerun64);
    return;
  }
  unsigned short* const out = elements(params.attention.out) +
                              row * params.attention.out_row_stride +
                              head * params.attention.out_head_stride;
  BROACH_UNROLL
  for (int n = 0; n < kMergeValues; ++n) {
    const int dim = n * kMergeThreads + index;
    if (dim < kHeadDim) out[dim] = bits[n];
  }
}

}  // namespace broach::chunk256
