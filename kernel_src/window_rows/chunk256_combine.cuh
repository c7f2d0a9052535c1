#pragma once

// window_rows decode, arith=chunk256, second kernel: combines a row's partials in chunk order (step
// 4 of docs/families/window_rows.md), then the float64 re-run. chunk256_partial.cuh is the first.
//
//   M = max m_c (and the sink)   a_c = exp(m_c - M)   o = chain of a_c o_c   l = chain of a_c l_c
//   out = round(o / l)
//
// Block: 128 threads, each a dim in 128. grid = (kv_heads * gqa_ratio, rows, 1).

#include "common/exp.cuh"
#include "common/half.cuh"
#include "common/warp.cuh"
#include "window_rows/chunk256_workspace.cuh"

namespace broach::window_rows {

struct Chunk256CombineShared {
  float scales[kChunk256CombineThreads];  // exp(m_c - M) of as many chunks at a time.
  float sums[kChunk256CombineThreads];    // Their l_c.
  float maxima[kChunk256CombineThreads / 32];
  unsigned rerun[kChunk256CombineThreads / 32];
  attention::Float64Shared float64;
};

constexpr int kValuesAThread =
    (kConfig.head_dim + kChunk256CombineThreads - 1) / kChunk256CombineThreads;

/// M: the largest of the chunks' maxima, and the sink.
BROACH_DEVICE float combined_maximum(Thread thread, const float* m, int chunks, bool sink_joins,
                                     float sink, Chunk256CombineShared& shared) {
  float most = -infinity();
  for (int c = static_cast<int>(thread.index()); c < chunks; c += kChunk256CombineThreads) {
    most = larger(most, m[c]);
  }
  most = max_warp(thread, most);
  if (thread.lane() == 0) shared.maxima[thread.warp()] = most;
  sync_block(thread);
  BROACH_UNROLL
  for (int w = 0; w < kChunk256CombineThreads / 32; ++w) most = larger(most, shared.maxima[w]);
  return sink_joins ? larger(most, sink) : most;
}

/// Whether the planted fault takes an output for one that needs float64: a partial of the KV head's
/// query heads in the rows beside it, or in its own, is not finite.
BROACH_DEVICE bool neighbour_is_bad(Thread thread, const Params& params,
                                    const Chunk256Partials& partials, int row, int kv_head) {
  bool bad = false;
  for (int other = max_of(row - 1, 0); other <= min_of(row + 1, params.attention.rows - 1);
       ++other) {
    const int chunks = chunk256_keys(thread, params, other).tiles<kChunkKeys>();
    for (int h = 0; h < ratio_of(params); ++h) {
      const long long first = first_partial(params, other, kv_head * ratio_of(params) + h);
      for (int c = 0; c < chunks; ++c) bad = bad || !is_finite(partials.sums[first + c]);
    }
  }
  return bad;
}

BROACH_GLOBAL(broach_window_rows_chunk256_combine, kChunk256CombineThreads, Params,
              Chunk256CombineShared) {
  const int head = static_cast<int>(thread.block_x());
  const int row = static_cast<int>(thread.block_y());
  const int index = static_cast<int>(thread.index());
  const KeyRange keys = chunk256_keys(thread, params, row);
  const int chunks = kConfig.has(Control::kWindowEarly)
                         ? min_of(keys.tiles<kChunkKeys>(), params.max_partials)
                         : keys.tiles<kChunkKeys>();
  const Chunk256Partials partials(params);
  const long long first = first_partial(params, row, head);
  constexpr bool kAddsSink = kConfig.softmax().adds_sink();
  const float sink = kAddsSink ? params.attention.sinks[head] : 0.0f;
  const float m =
      combined_maximum(thread, partials.maxima + first, chunks, kAddsSink, sink, shared);

  float o[kValuesAThread] = {};
  float l = 0.0f;
  for (int start = 0; start < chunks; start += kChunk256CombineThreads) {
    const int count = min_of(kChunk256CombineThreads, chunks - start);
    if (index < count) {
      const float scale = exp32(sub_rn(partials.maxima[first + start + index], m));
      shared.scales[index] = kConfig.has(Control::kRescaleDropped) ? 1.0f : scale;
      shared.sums[index] = partials.sums[first + start + index];
    }
    sync_block(thread);
    const float* const chunk_o = partials.values + (first + start) * kConfig.head_dim;
#if !defined(BROACH_HOST)
#pragma unroll 4
#endif
    for (int c = 0; c < count; ++c) {
      l = fma_rn(shared.scales[c], shared.sums[c], l);
      BROACH_UNROLL
      for (int n = 0; n < kValuesAThread; ++n) {
        const int dim = n * kChunk256CombineThreads + index;
        if (dim < kConfig.head_dim)
          o[n] = fma_rn(shared.scales[c], chunk_o[c * kConfig.head_dim + dim], o[n]);
      }
    }
    sync_block(thread);
  }
  if constexpr (kAddsSink) l = add_rn(l, exp32(sub_rn(sink, m)));

  unsigned short bits[kValuesAThread];
  bool finite = true;
  BROACH_UNROLL
  for (int n = 0; n < kValuesAThread; ++n) {
    bits[n] = rounded_output(div_rn(o[n], l));
    if (n * kChunk256CombineThreads + index < kConfig.head_dim)
      finite = finite && is_finite_half<kConfig.dtype>(bits[n]);
  }
  if constexpr (kConfig.has(Control::kWholeBlockRerun)) {
    finite = finite && !neighbour_is_bad(thread, params, partials, row, head / ratio_of(params));
  }
  const unsigned lost = ballot(thread, !finite);
  if (thread.lane() == 0) shared.rerun[thread.warp()] = lost;
  sync_block(thread);
  bool again = false;
  BROACH_UNROLL
  for (int w = 0; w < kChunk256CombineThreads / 32; ++w) again = again || shared.rerun[w] != 0;
  if (again && !kConfig.has(Control::kRerunDropped)) {
    rerun_head<kChunk256CombineThreads>(thread, params, row, head, params.slots[row], keys,
                                        shared.float64);
    return;
  }
  unsigned short* const out = elements(params.attention.out) +
                              row * params.attention.out_row_stride +
                              head * params.attention.out_head_stride;
  BROACH_UNROLL
  for (int n = 0; n < kValuesAThread; ++n) {
    const int dim = n * kChunk256CombineThreads + index;
    if (dim < kConfig.head_dim) out[dim] = bits[n];
  }
}

}  // namespace broach::window_rows
