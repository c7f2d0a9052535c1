#pragma once

// One chunk of one (row, KV head): arithmetic chunk256 steps 1 to 3 (docs/numerics.md).
//
// Block: 8 warps, one a run of 32 keys. grid = (max_chunks, kv_heads, rows); blockIdx.x counts from
// the row's first chunk, and blocks past its last one leave at once.
// A key's row is read by kLanes lanes, 16 bytes each; where kLanes < 32 the warp scores several
// keys at once, and for P x V its lane groups take different query heads of the same keys.
// More than kPassHeads query heads go in passes that read the chunk again, out of the L2 cache.

#include "common/exp.cuh"
#include "common/half.cuh"
#include "common/load.cuh"
#include "common/tanh.cuh"
#include "common/warp.cuh"
#include "window_rows/chunk256_partials.cuh"

namespace broach::chunk256 {

// The xor tree's lanes: 8 dims each, rounded up to a power of two. A thread stands for kSubs of
// them, lanes i and i + 32.
constexpr int kTreeLanes = at_least_pow2((kHeadDim + 7) / 8);
constexpr int kLanes = min_of(kTreeLanes, 32);
constexpr int kSubs = kTreeLanes / kLanes;
constexpr int kGroups = 32 / kLanes;

constexpr int kMaxPassHeads = kSubs == 1 ? 8 : 4;  // Bounds the accumulators a thread holds.
constexpr int kPassHeads = kGeneric ? kMaxPassHeads : min_of(kGqaRatio, kMaxPassHeads);
constexpr int kLaneHeads = (kPassHeads + kGroups - 1) / kGroups;
constexpr int kBatch = kSubs == 1 ? 8 : 4;  // Loads of 16 bytes in flight a thread: 8.
// Query heads whose runs are summed at once: 16 KiB of shared memory at most.
constexpr int kSumHeads = max_of(1, min_of(kPassHeads, 512 / kHeadDim));

struct PartShared {
  alignas(16) unsigned short q[kPassHeads][kHeadDim];
  alignas(16) float weights[kPassHeads][kChunkKeys];  // Scores at first.
  alignas(16) float o[kRuns][kSumHeads][kHeadDim];
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

BROACH_DEVICE Run run_of(const RowKeys& keys, int chunk, int index) {
  const int first = chunk * kChunkKeys + index * kRunKeys;
  const int last = kControl == Control::kUnmaskedBlock ? kRunKeys - 1 : keys.last - first;
  return {index, first, max_of(keys.first - first, 0), min_of(last, kRunKeys - 1)};
}

BROACH_DEVICE float finished_score(const Params& params, float dot) {
  float s = mul_rn(params.attention.scale, dot);
  if constexpr (kSoftcap)
    s = mul_rn(params.attention.softcap, tanh32(div_rn(s, params.attention.softcap)));
  return s;
}

/// Step 1: the scores of the warp's run, into shared.weights.
BROACH_DEVICE void score_run(Thread thread, const Params& params, const KeyRows& rows,
                             const Run& run, int heads, PartShared& shared) {
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
        if (run.sees(key) && dim < kHeadDim) k[b][sub] = load8(rows.at(run.first + key) + dim);
      }
    }
    for (int h = 0; h < heads; ++h) {
      float dots[kBatch];
      BROACH_UNROLL
      for (int sub = 0; sub < kSubs; ++sub) {
        const int dim = (in_group + sub * kLanes) * 8;
        Halves8 q{{0, 0, 0, 0}};
        if (dim < kHeadDim) q = shared8(&shared.q[h][dim]);
        BROACH_UNROLL
        for (int b = 0; b < kBatch; ++b) {
          float dot = 0.0f;
          BROACH_UNROLL
          for (unsigned e = 0; e < 8; ++e) {
            dot = fma_rn(widen<kDtype>(q, e), widen<kDtype>(k[b][sub], e), dot);
          }
          dots[b] = sub == 0 ? dot : add_rn(dots[b], dot);  // The tree's mask 32.
        }
      }
      const float dot = sum_tree<kLanes>(thread, dots);
      constexpr int kHolders = kLanes / kBatch;
      if (in_group % kHolders == 0) {
        const int key = base + in_group / kHolders * kGroups + group;
        shared.weights[h][run.index * kRunKeys + key] = finished_score(params, dot);
      }
    }
  }
}

/// The largest score of the warp's run for each query head, into shared.m.
BROACH_DEVICE void run_maxima(Thread thread, const Run& run, int heads, PartShared& shared) {
  const int lane = static_cast<int>(thread.lane());
  for (int h = 0; h < heads; ++h) {
    const float score =
        run.sees(lane) ? shared.weights[h][run.index * kRunKeys + lane] : -infinity();
    const float m = max_warp(thread, score);
    if (lane == 0) shared.m[h][run.index] = m;
  }
}

BROACH_DEVICE float chunk_maximum(const PartShared& shared, int h) {
  float m = shared.m[h][0];
  BROACH_UNROLL
  for (int r = 1; r < kRuns; ++r) m = larger(m, shared.m[h][r]);
  return m;
}

/// Step 2: scores become weights.
BROACH_DEVICE void weigh_run(Thread thread, const Run& run, int heads, PartShared& shared) {
  const int lane = static_cast<int>(thread.lane());
  if (!run.sees(lane)) return;
  for (int h = 0; h < heads; ++h) {
    float& weight = shared.weights[h][run.index * kRunKeys + lane];
    weight = exp32(sub_rn(weight, chunk_maximum(shared, h)));
  }
}

/// A run's sums in a lane: query heads group, group + kGroups, ... and the lane's own dims.
struct RunSums {
  float o[kLaneHeads][kSubs][8];
  float l[kLaneHeads];
};

/// Step 3: l_r and o_r, in key order.
BROACH_DEVICE void sum_run(Thread thread, const KeyRows& rows, const Run& run, int heads,
                           const PartShared& shared, RunSums& sums) {
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
        if (run.sees(base + b) && dim < kHeadDim) {
          v[b][sub] = load8(rows.at(run.first + base + b) + dim);
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
        const float weight = shared.weights[h][run.index * kRunKeys + base + b];
        sums.l[i] = add_rn(sums.l[i], weight);
        BROACH_UNROLL
        for (int sub = 0; sub < kSubs; ++sub) {
          BROACH_UNROLL
          for (unsigned e = 0; e < 8; ++e) {
            sums.o[i][sub][e] = fma_rn(weight, widen<kDtype>(v[b][sub], e), sums.o[i][sub][e]);
          }
        }
      }
    }
  }
}

/// Leaves the lane's share of query heads first .. first + kSumHeads - 1 in shared.o.
BROACH_DEVICE void share_sums(Thread thread, const Run& run, int heads, int first,
                              const RunSums& sums, PartShared& shared) {
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
      if (dim >= kHeadDim) continue;
      BROACH_UNROLL
      for (int e = 0; e < 8; ++e) shared.o[run.index][h - first][dim + e] = sums.o[i][sub][e];
    }
    if (in_group == 0) shared.l[h][run.index] = sums.l[i];
  }
}

/// A sum over the runs that hold a key of the row, in run order, from the first one's value.
template <class At>
BROACH_DEVICE float sum_runs(int first_run, int last_run, const At& at) {
  if constexpr (kControl == Control::kRoundingDropped) {
    double exact = 0.0;
    for (int r = first_run; r <= last_run; ++r) exact = add_rn(exact, static_cast<double>(at(r)));
    return static_cast<float>(exact);
  }
  float sum = at(first_run);
  for (int r = first_run + 1; r <= last_run; ++r) sum = add_rn(sum, at(r));
  return sum;
}

BROACH_GLOBAL(broach_window_rows_part, kPartThreads, Params, PartShared) {
  const int row = static_cast<int>(thread.block_z());
  const int kv_head = static_cast<int>(thread.block_y());
  const int nth = static_cast<int>(thread.block_x());
  const int index = static_cast<int>(thread.index());
  const RowKeys keys = keys_of_row(thread, params, row);
  if (nth >= keys.chunks()) return;
  const int chunk = keys.first_chunk() + nth;
  const Run run = run_of(keys, chunk, static_cast<int>(thread.warp()));
  const int first_seen = max_of(keys.first - chunk * kChunkKeys, 0);
  const int last_seen = kControl == Control::kUnmaskedBlock
                            ? kChunkKeys - 1
                            : min_of(keys.last - chunk * kChunkKeys, kChunkKeys - 1);
  const int ratio = ratio_of(params);
  const int cache_head =
      kControl == Control::kRatioOffByOne ? kv_head * ratio / (ratio + 1) : kv_head;
  const KeyRows k = k_rows(params, keys, run.first + run.seen_first, cache_head);
  const KeyRows v = v_rows(params, keys, run.first + run.seen_first, cache_head);
  const Partials partials(params);

  for (int first_head = 0; first_head < ratio; first_head += kPassHeads) {
    const int heads = min_of(kPassHeads, ratio - first_head);
    const int head = kv_head * ratio + first_head;
    const unsigned short* const q =
        elements(params.attention.q) + row * params.attention.q_row_stride;
    for (int at = index * 8; at < heads * kHeadDim; at += kPartThreads * 8) {
      const int h = at / kHeadDim;
      const int dim = at % kHeadDim;
      share8(&shared.q[h][dim], load8(q + (head + h) * params.attention.q_head_stride + dim));
    }
    sync_block(thread);
    score_run(thread, params, k, run, heads, shared);
    sync_warp(thread);
    run_maxima(thread, run, heads, shared);
    sync_block(thread);
    weigh_run(thread, run, heads, shared);
    sync_warp(thread);
    RunSums sums;
    sum_run(thread, v, run, heads, shared, sums);

    for (int first = 0; first < heads; first += kSumHeads) {
      const int count = min_of(kSumHeads, heads - first);
      if (!run.empty()) share_sums(thread, run, heads, first, sums, shared);
      sync_block(thread);
      for (int at = index; at < count * kHeadDim; at += kPartThreads) {
        const int h = at / kHeadDim;
        const int dim = at % kHeadDim;
        partials.o[(first_partial(params, row, head + first + h) + nth) * kHeadDim + dim] =
            sum_runs(first_seen / kRunKeys, last_seen / kRunKeys,
                     [&](int r) { return shared.o[r][h][dim]; });
      }
      if (index < count) {
        const int h = first + index;
        const long long partial = first_partial(params, row, head + h) + nth;
        partials.m[partial] = chunk_maximum(shared, h);
        partials.l[partial] = sum_runs(first_seen / kRunKeys, last_seen / kRunKeys,
                                       [&](int r) { return shared.l[h][r]; });
      }
      sync_block(thread);
    }
  }
}

}  // namespace broach::chunk256
