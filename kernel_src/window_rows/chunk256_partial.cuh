#pragma once

// window_rows decode, arith=chunk256 (docs/families/window_rows.md), first kernel: a partial a
// (row, query head, chunk of 256 keys at an absolute position), steps 1 to 3 of the arithmetic.
//
//   out[row, head, d] = sum_j p_j v_j[d] / (sum_j p_j + p_sink)      p_j = exp(s_j - max)
//   s_j = scale q[row, head] . k_j, softcapped where the shape says so
//
// q, k, v, out: 16 bits; everything between them fp32, each operation explicit.
// Block: 8 warps, one a run of 32 keys. grid = (max_chunks, kv_heads, rows); blockIdx.x counts from
// the row's first chunk, and blocks past its last one leave at once.
// A key's row is read by kLanes lanes, 16 bytes each; where kLanes < 32 the warp scores several
// keys at once, and for P x V its lane groups take different query heads of the same keys.
// More than kPassHeads query heads go in passes that read the chunk again, out of the L2 cache.
// Chips: any. The bits of a row depend on its own query and keys only, and are every chip's.

#include "attention/softmax.cuh"
#include "common/half.cuh"
#include "common/load.cuh"
#include "common/warp.cuh"
#include "window_rows/chunk256_workspace.cuh"

namespace broach::window_rows {

// The xor tree's lanes: 8 dims each, rounded up to a power of two. A thread stands for kSubs of
// them, lanes i and i + 32.
constexpr int kTreeLanes = at_least_pow2((kConfig.head_dim + 7) / 8);
constexpr int kLanes = min_of(kTreeLanes, 32);
constexpr int kSubs = kTreeLanes / kLanes;
constexpr int kGroups = 32 / kLanes;

constexpr int kMaxPassHeads = kSubs == 1 ? 8 : 4;  // Bounds the accumulators a thread holds.
constexpr int kPassHeads = kConfig.generic ? kMaxPassHeads : min_of(kConfig.ratio, kMaxPassHeads);
constexpr int kLaneHeads = (kPassHeads + kGroups - 1) / kGroups;
constexpr int kBatch = kSubs == 1 ? 8 : 4;  // Loads of 16 bytes in flight a thread: 8.
// Query heads whose runs are summed at once: 16 KiB of shared memory at most.
constexpr int kSumHeads = max_of(1, min_of(kPassHeads, 512 / kConfig.head_dim));

struct Chunk256PartialShared {
  alignas(16) unsigned short q[kPassHeads][kConfig.head_dim];
  alignas(16) float p[kPassHeads][kChunkKeys];  // Scores at first.
  alignas(16) float o[kRuns][kSumHeads][kConfig.head_dim];
  float m[kPassHeads][kRuns];
  float l[kPassHeads][kRuns];
};

/// What a warp's lanes know of their run.
struct Run {
  int index;
  int first;       ///< Position of the run's key 0.
  int seen_first;  ///< Keys of the run that the row sees, counted in the run, inclusive.
  int seen_last;

  BROACH_DEVICE bool empty() const { return seen_first > seen_last; }
  BROACH_DEVICE bool sees(int key) const { return key >= seen_first && key <= seen_last; }
  BROACH_DEVICE bool sees_any(int from, int count) const {
    return from <= seen_last && from + count > seen_first;
  }
};

BROACH_DEVICE Run run_of(const KeyRange& keys, int chunk, int index) {
  const int first = chunk * kChunkKeys + index * kRunKeys;
  const int last = kConfig.has(Control::kUnmaskedBlock) ? kRunKeys - 1 : keys.last - first;
  return {index, first, max_of(keys.first - first, 0), min_of(last, kRunKeys - 1)};
}

/// Step 1: the scores of the warp's run, into shared.p.
BROACH_DEVICE void score_run(Thread thread, const Params& params, const Kv& kv, const Run& run,
                             int heads, Chunk256PartialShared& shared) {
  const int lane = static_cast<int>(thread.lane());
  const int in_group = lane % kLanes;
  const int group = lane / kLanes;
  for (int base = 0; base < kRunKeys; base += kBatch * kGroups) {
    if (!run.sees_any(base, kBatch * kGroups)) continue;
    Halves8 k[kBatch][kSubs];
    BROACH_UNROLL
    for (int b = 0; b < kBatch; ++b) {
      const int key = base + b * kGroups + group;
      BROACH_UNROLL
      for (int sub = 0; sub < kSubs; ++sub) {
        const int dim = (in_group + sub * kLanes) * 8;
        k[b][sub] = Halves8{{0, 0, 0, 0}};
        if (run.sees(key) && dim < kConfig.head_dim) {
          k[b][sub] = load8(kv.k(run.first + key) + dim);
        }
      }
    }
    for (int h = 0; h < heads; ++h) {
      float dots[kBatch];
      BROACH_UNROLL
      for (int sub = 0; sub < kSubs; ++sub) {
        const int dim = (in_group + sub * kLanes) * 8;
        Halves8 q{{0, 0, 0, 0}};
        if (dim < kConfig.head_dim) q = shared8(&shared.q[h][dim]);
        BROACH_UNROLL
        for (int b = 0; b < kBatch; ++b) {
          float dot = 0.0f;
          BROACH_UNROLL
          for (unsigned e = 0; e < 8; ++e) {
            dot = fma_rn(widen<kConfig.dtype>(q, e), widen<kConfig.dtype>(k[b][sub], e), dot);
          }
          dots[b] = sub == 0 ? dot : add_rn(dots[b], dot);  // The tree's mask 32.
        }
      }
      const float dot = sum_tree<kLanes>(thread, dots);
      constexpr int kHolders = kLanes / kBatch;
      if (in_group % kHolders == 0) {
        const int key = base + in_group / kHolders * kGroups + group;
        shared.p[h][run.index * kRunKeys + key] =
            attention::score_of<kConfig.softmax()>(params.attention, dot);
      }
    }
  }
}

/// The largest score of the warp's run for each query head, into shared.m.
BROACH_DEVICE void run_maxima(Thread thread, const Run& run, int heads,
                              Chunk256PartialShared& shared) {
  const int lane = static_cast<int>(thread.lane());
  for (int h = 0; h < heads; ++h) {
    const float score = run.sees(lane) ? shared.p[h][run.index * kRunKeys + lane] : -infinity();
    const float m = max_warp(thread, score);
    if (lane == 0) shared.m[h][run.index] = m;
  }
}

BROACH_DEVICE float chunk_maximum(const Chunk256PartialShared& shared, int h) {
  float m = shared.m[h][0];
  BROACH_UNROLL
  for (int r = 1; r < kRuns; ++r) m = larger(m, shared.m[h][r]);
  return m;
}

/// Step 2: scores become P.
BROACH_DEVICE void softmax_run(Thread thread, const Run& run, int heads,
                               Chunk256PartialShared& shared) {
  const int lane = static_cast<int>(thread.lane());
  if (!run.sees(lane)) return;
  for (int h = 0; h < heads; ++h) {
    float& p = shared.p[h][run.index * kRunKeys + lane];
    p = exp32(sub_rn(p, chunk_maximum(shared, h)));
  }
}

/// A run's sums in a lane: query heads group, group + kGroups, ... and the lane's own dims.
struct RunSums {
  float o[kLaneHeads][kSubs][8];
  float l[kLaneHeads];
};

/// Step 3: l_r and o_r, in key order.
BROACH_DEVICE void sum_run(Thread thread, const Kv& kv, const Run& run, int heads,
                           const Chunk256PartialShared& shared, RunSums& sums) {
  const int lane = static_cast<int>(thread.lane());
  const int in_group = lane % kLanes;
  const int group = lane / kLanes;
  BROACH_UNROLL
  for (int i = 0; i < kLaneHeads; ++i) {
    sums.l[i] = 0.0f;
    BROACH_UNROLL
    for (int sub = 0; sub < kSubs; ++sub) {
      BROACH_UNROLL
      for (int e = 0; e < 8; ++e) sums.o[i][sub][e] = 0.0f;
    }
  }
  for (int base = 0; base < kRunKeys; base += kBatch) {
    if (!run.sees_any(base, kBatch)) continue;
    Halves8 v[kBatch][kSubs];
    BROACH_UNROLL
    for (int b = 0; b < kBatch; ++b) {
      BROACH_UNROLL
      for (int sub = 0; sub < kSubs; ++sub) {
        const int dim = (in_group + sub * kLanes) * 8;
        v[b][sub] = Halves8{{0, 0, 0, 0}};
        if (run.sees(base + b) && dim < kConfig.head_dim) {
          v[b][sub] = load8(kv.v(run.first + base + b) + dim);
        }
      }
    }
    BROACH_UNROLL
    for (int b = 0; b < kBatch; ++b) {
      if (!run.sees(base + b)) continue;
      BROACH_UNROLL
      for (int i = 0; i < kLaneHeads; ++i) {
        const int h = group + i * kGroups;
        if (h >= heads) continue;
        const float p = shared.p[h][run.index * kRunKeys + base + b];
        sums.l[i] = add_rn(sums.l[i], p);
        BROACH_UNROLL
        for (int sub = 0; sub < kSubs; ++sub) {
          BROACH_UNROLL
          for (unsigned e = 0; e < 8; ++e) {
            sums.o[i][sub][e] = fma_rn(p, widen<kConfig.dtype>(v[b][sub], e), sums.o[i][sub][e]);
          }
        }
      }
    }
  }
}

/// Leaves the lane's share of query heads first .. first + kSumHeads - 1 in shared.o.
BROACH_DEVICE void share_sums(Thread thread, const Run& run, int heads, int first,
                              const RunSums& sums, Chunk256PartialShared& shared) {
  const int lane = static_cast<int>(thread.lane());
  const int in_group = lane % kLanes;
  const int group = lane / kLanes;
  BROACH_UNROLL
  for (int i = 0; i < kLaneHeads; ++i) {
    const int h = group + i * kGroups;
    if (h >= heads || h < first || h >= first + kSumHeads) continue;
    BROACH_UNROLL
    for (int sub = 0; sub < kSubs; ++sub) {
      const int dim = (in_group + sub * kLanes) * 8;
      if (dim >= kConfig.head_dim) continue;
      BROACH_UNROLL
      for (int e = 0; e < 8; ++e) shared.o[run.index][h - first][dim + e] = sums.o[i][sub][e];
    }
    if (in_group == 0) shared.l[h][run.index] = sums.l[i];
  }
}

/// A sum over the runs that hold a key of the row, in run order, from the first one's value.
template <class At>
BROACH_DEVICE float sum_runs(int first_run, int last_run, const At& at) {
  if constexpr (kConfig.has(Control::kRoundingDropped)) {
    double exact = 0.0;
    for (int r = first_run; r <= last_run; ++r) exact = add_rn(exact, static_cast<double>(at(r)));
    return static_cast<float>(exact);
  }
  float sum = at(first_run);
  for (int r = first_run + 1; r <= last_run; ++r) sum = add_rn(sum, at(r));
  return sum;
}

BROACH_GLOBAL(broach_window_rows_chunk256_partial, kChunk256PartialThreads, Params,
              Chunk256PartialShared) {
  const int row = static_cast<int>(thread.block_z());
  const int kv_head = static_cast<int>(thread.block_y());
  const int nth = static_cast<int>(thread.block_x());
  const int index = static_cast<int>(thread.index());
  const KeyRange keys = chunk256_keys(thread, params, row);
  if (nth >= keys.tiles<kChunkKeys>()) return;
  const int chunk = keys.first_tile<kChunkKeys>() + nth;
  const Run run = run_of(keys, chunk, static_cast<int>(thread.warp()));
  const int first_seen = max_of(keys.first - chunk * kChunkKeys, 0);
  const int last_seen = kConfig.has(Control::kUnmaskedBlock)
                            ? kChunkKeys - 1
                            : min_of(keys.last - chunk * kChunkKeys, kChunkKeys - 1);
  const int ratio = ratio_of(params);
  const Kv kv = kv_of(params, params.slots[row], kv_head);
  const Chunk256Partials partials(params);

  for (int first_head = 0; first_head < ratio; first_head += kPassHeads) {
    const int heads = min_of(kPassHeads, ratio - first_head);
    const int head = kv_head * ratio + first_head;
    const unsigned short* const q =
        elements(params.attention.q) + row * params.attention.q_row_stride;
    for (int at = index * 8; at < heads * kConfig.head_dim; at += kChunk256PartialThreads * 8) {
      const int h = at / kConfig.head_dim;
      const int dim = at % kConfig.head_dim;
      share8(&shared.q[h][dim], load8(q + (head + h) * params.attention.q_head_stride + dim));
    }
    sync_block(thread);
    score_run(thread, params, kv, run, heads, shared);
    sync_warp(thread);
    run_maxima(thread, run, heads, shared);
    sync_block(thread);
    softmax_run(thread, run, heads, shared);
    sync_warp(thread);
    RunSums sums;
    sum_run(thread, kv, run, heads, shared, sums);

    for (int first = 0; first < heads; first += kSumHeads) {
      const int count = min_of(kSumHeads, heads - first);
      if (!run.empty()) share_sums(thread, run, heads, first, sums, shared);
      sync_block(thread);
      for (int at = index; at < count * kConfig.head_dim; at += kChunk256PartialThreads) {
        const int h = at / kConfig.head_dim;
        const int dim = at % kConfig.head_dim;
        const long long partial = first_partial(params, row, head + first + h) + nth;
        partials.values[partial * kConfig.head_dim + dim] =
            sum_runs(first_seen / kRunKeys, last_seen / kRunKeys,
                     [&](int r) { return shared.o[r][h][dim]; });
      }
      if (index < count) {
        const int h = first + index;
        const long long partial = first_partial(params, row, head + h) + nth;
        partials.maxima[partial] = chunk_maximum(shared, h);
        partials.sums[partial] = sum_runs(first_seen / kRunKeys, last_seen / kRunKeys,
                                          [&](int r) { return shared.l[h][r]; });
      }
      sync_block(thread);
    }
  }
}

}  // namespace broach::window_rows
