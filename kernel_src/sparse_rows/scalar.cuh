#pragma once

// sparse_rows, tile=scalar (docs/families/sparse_rows.md):
//
//   out[row, head, d] = sum_j p_j v_j[d] / sum_j p_j      p_j = exp(s_j - max)     s_j = scale
//   q.k_j
//
// over the row's selected keys. The list of keys is cut into part_count parts of ceil(length /
// part_count) keys by position in the list. A part walks tiles of 32 keys from its first on:
//
//   s_j   lane i holds dims 8i .. 8i + 7: an fma chain over its products from 0, then a xor tree
//         over the lanes (above 256 dims lanes i and i + 32 are a thread's); one rounding by scale
//   m' = max(m, max s_j)   a = exp(m - m')   p_j = exp(s_j - m')
//   l = l a, then + p_j in key order         o = o a, then fma(p_j, v_j, o) in key order
//
// and the parts join in order (combine.cuh). P stays fp32. out = round(o / l), an IEEE division. A
// row without any key gets +0.
//
// Block: 8 warps. grid = (rows, kv_heads, splits): one split folds every part of a (row, KV head)
// as it comes and writes the output; part_count splits leave partials, which
// broach_sparse_rows_merge joins. The bits are the same. Chips: any, with every chip's bits.

#include "common/exp.cuh"
#include "common/half.cuh"
#include "common/load.cuh"
#include "common/ops.cuh"
#include "common/warp.cuh"
#include "sparse_rows/combine.cuh"
#include "sparse_rows/query.cuh"
#include "sparse_rows/rerun.cuh"

namespace broach::sparse_rows {

constexpr int kScalarThreads = 256;
constexpr int kScalarWarps = kScalarThreads / 32;
constexpr int kMergeThreads = 128;
constexpr int kTileKeys = 32;
constexpr int kHeads = kGeneric ? kMaxRatio : kRatio;

// Scores: a warp takes 4 of a tile's keys, kGroups of them side by side.
constexpr int kTreeLanes = at_least_pow2((kHeadDim + 7) / 8);
constexpr int kLanes = min_of(kTreeLanes, 32);
constexpr int kSubs = kTreeLanes / kLanes;
constexpr int kGroups = 32 / kLanes;
constexpr int kWarpKeys = kTileKeys / kScalarWarps;
constexpr int kBatch = kWarpKeys / kGroups;
static_assert(kGroups * kBatch == kWarpKeys, "head_dim >= 64");

// P x V: a thread holds two dims of some query heads; threads beyond whole head groups are idle.
constexpr int kPairs = kHeadDim / 2;
constexpr int kHeadGroups = kScalarThreads / kPairs;
constexpr int kThreadHeads = (kHeads + kHeadGroups - 1) / kHeadGroups;
constexpr int kValueBatch = 8;  // Loads in flight a thread.

struct ScalarShared {
  alignas(16) Element q[kHeads][kHeadDim];
  float weights[2][kHeads][kTileKeys + 1];  // Scores at first; a tile, then the next.
  CacheCell cells[2][kTileKeys];
  float rescale[2][kHeads];  // a of the tile
  float maxima[kHeads];      // m of the part
  float sums[kHeads];        // l of the part
  float row_maxima[kHeads];  // M
  float row_sums[kHeads];    // l
  Rescale joins[kHeads];
  unsigned redo[kHeads];
  RerunShared rerun;
};

/// A run of the list: keys first .. last - 1.
struct Part {
  int first;
  int last;
};

BROACH_DEVICE Part part_of(const Params& p, const Selection& selection, int index) {
  const int count = part_count_of(p);
  const int length = selection.length();
  const int keys = (length + count - 1) / count;
  return {min_of(index * keys, length), min_of((index + 1) * keys, length)};
}

/// Finds the cells of the tile that begins at list index `first`. The block's last warp's work.
BROACH_DEVICE void find_cells(Thread thread, const Selection& selection, const KvHead& cache,
                              int first, int last, CacheCell (&cells)[kTileKeys]) {
  const int lane = static_cast<int>(thread.lane());
  if (thread.warp() == kScalarWarps - 1 && first + lane < last) {
    cells[lane] = cache.cell(selection.key(first + lane));
  }
}

/// The scores of the warp's keys of a tile of `count` keys, into `scores`.
BROACH_DEVICE void score_tile(Thread thread, const Params& p, const KvHead& cache, int heads,
                              int count, const CacheCell (&cells)[kTileKeys],
                              float (&scores)[kHeads][kTileKeys + 1], const ScalarShared& shared) {
  const int lane = static_cast<int>(thread.lane());
  const int in_group = lane % kLanes;
  const int first = static_cast<int>(thread.warp()) * kWarpKeys + lane / kLanes;
  if (static_cast<int>(thread.warp()) * kWarpKeys >= count) return;
  Halves8 k[kBatch][kSubs];
  BROACH_UNROLL
  for (int b = 0; b < kBatch; ++b) {
    const int key = first + b * kGroups;
    BROACH_UNROLL
    for (int sub = 0; sub < kSubs; ++sub) {
      const int dim = (in_group + sub * kLanes) * 8;
      k[b][sub] = Halves8{{0, 0, 0, 0}};
      if (key < count && dim < kHeadDim) k[b][sub] = load8(cache.k + k_offset(p, cells[key]) + dim);
    }
  }
  BROACH_ROLLED
  for (int h = 0; h < heads; ++h) {
    float dots[kBatch];
    BROACH_UNROLL
    for (int sub = 0; sub < kSubs; ++sub) {
      const int dim = (in_group + sub * kLanes) * 8;
      float q[8] = {};
      if (dim < kHeadDim) {
        BROACH_UNROLL
        for (int e = 0; e < 8; ++e) q[e] = value_of(shared.q[h][dim + e]);
      }
      BROACH_UNROLL
      for (int b = 0; b < kBatch; ++b) {
        float dot = 0.0f;
        BROACH_UNROLL
        for (unsigned e = 0; e < 8; ++e) dot = fma_rn(q[e], widen<kHalf>(k[b][sub], e), dot);
        dots[b] = sub == 0 ? dot : add_rn(dots[b], dot);  // The tree's mask 32.
      }
    }
    const float dot = sum_tree<kLanes>(thread, dots);
    constexpr int kHolders = kLanes / kBatch;
    const int key = first + in_group / kHolders * kGroups;
    if (in_group % kHolders == 0 && key < count) scores[h][key] = mul_rn(p.attention.scale, dot);
  }
}

/// Turns the scores of a tile into P; each warp does some query heads.
BROACH_DEVICE void soften_tile(Thread thread, int heads, int count, int turn,
                               ScalarShared& shared) {
  const int lane = static_cast<int>(thread.lane());
  BROACH_ROLLED
  for (int h = static_cast<int>(thread.warp()); h < heads; h += kScalarWarps) {
    const float score = lane < count ? shared.weights[turn][h][lane] : -infinity();
    const float before = shared.maxima[h];
    const float next = larger(before, max_warp(thread, score));
    if (lane < count) shared.weights[turn][h][lane] = exp32(sub_rn(score, next));
    sync_warp(thread);  // Every lane has read the maximum before it moves.
    if (lane == 0) {
      shared.rescale[turn][h] = exp32(sub_rn(before, next));
      shared.maxima[h] = next;
    }
  }
}

using Outputs = float[kThreadHeads][2];

/// Adds a tile of `count` keys to the part's o and l.
BROACH_DEVICE void add_tile(Thread thread, const Params& p, const KvHead& cache, int heads,
                            int count, int turn, ScalarShared& shared, Outputs& o) {
  const int index = static_cast<int>(thread.index());
  const int pair = index % kPairs;
  const int group = index / kPairs;
  if (group < kHeadGroups) {
    BROACH_UNROLL
    for (int i = 0; i < kThreadHeads; ++i) {
      const int h = group + i * kHeadGroups;
      const float a = h < heads ? shared.rescale[turn][h] : 0.0f;
      o[i][0] = mul_rn(o[i][0], a);
      o[i][1] = mul_rn(o[i][1], a);
    }
    BROACH_ROLLED
    for (int base = 0; base < count; base += kValueBatch) {
      unsigned v[kValueBatch];
      BROACH_UNROLL
      for (int b = 0; b < kValueBatch; ++b) {
        v[b] = 0;
        if (base + b >= count) continue;
        const unsigned short* const at =
            cache.v + v_offset(p, shared.cells[turn][base + b]) + pair * 2;
        v[b] = load_pair(at);
      }
      BROACH_UNROLL
      for (int b = 0; b < kValueBatch; ++b) {
        if (base + b >= count) break;
        const float low = widen<kHalf>(static_cast<unsigned short>(v[b] & 0xffffu));
        const float high = widen<kHalf>(static_cast<unsigned short>(v[b] >> 16));
        BROACH_UNROLL
        for (int i = 0; i < kThreadHeads; ++i) {
          const int h = group + i * kHeadGroups;
          if (h >= heads) continue;
          const float weight = shared.weights[turn][h][base + b];
          o[i][0] = fma_rn(weight, low, o[i][0]);
          o[i][1] = fma_rn(weight, high, o[i][1]);
        }
      }
    }
  }
  if (index < heads) {
    float l = mul_rn(shared.sums[index], shared.rescale[turn][index]);
    BROACH_ROLLED
    for (int key = 0; key < count; ++key) l = add_rn(l, shared.weights[turn][index][key]);
    shared.sums[index] = l;
  }
}

/// Walks one part: o in registers, m and l in shared memory after a block barrier.
BROACH_DEVICE void walk_part(Thread thread, const Params& p, const Selection& selection,
                             const KvHead& cache, int heads, const Part& part, ScalarShared& shared,
                             Outputs& o) {
  const int index = static_cast<int>(thread.index());
  BROACH_UNROLL
  for (int i = 0; i < kThreadHeads; ++i) o[i][0] = o[i][1] = 0.0f;
  sync_block(thread);
  if (index < heads) {
    shared.maxima[index] = -infinity();
    shared.sums[index] = 0.0f;
  }
  find_cells(thread, selection, cache, part.first, part.last, shared.cells[0]);
  sync_block(thread);
  int turn = 0;
  BROACH_ROLLED
  for (int first = part.first; first < part.last; first += kTileKeys) {
    const int count = min_of(kTileKeys, part.last - first);
    score_tile(thread, p, cache, heads, count, shared.cells[turn], shared.weights[turn], shared);
    // The other turn's tile is done with as well.
    sync_block(thread);
    soften_tile(thread, heads, count, turn, shared);
    find_cells(thread, selection, cache, first + kTileKeys, part.last, shared.cells[1 - turn]);
    sync_block(thread);
    add_tile(thread, p, cache, heads, count, turn, shared, o);
    turn = 1 - turn;
  }
  sync_block(thread);
}

/// The partials of every (row, query head, part): o [D], then m and l.
struct Partials {
  float* values;
  float* maxima;
  float* sums;

  BROACH_DEVICE Partials(const Params& p, int row, int head) {
    const long long heads = static_cast<long long>(p.cache.kv_heads) * ratio_of(p);
    const long long parts = part_count_of(p);
    const long long all = p.attention.rows * heads * parts;
    const long long first = (row * heads + head) * parts;
    float* const start = static_cast<float*>(p.workspace);
    values = start + first * kHeadDim;
    maxima = start + all * kHeadDim + first;
    sums = start + all * (kHeadDim + 1) + first;
  }
};

/// Leaves a part as a partial.
BROACH_DEVICE void leave_part(Thread thread, const Params& p, int row, int first_head, int heads,
                              int part, const ScalarShared& shared, const Outputs& o) {
  const int index = static_cast<int>(thread.index());
  const int group = index / kPairs;
  BROACH_UNROLL
  for (int i = 0; i < kThreadHeads; ++i) {
    const int h = group + i * kHeadGroups;
    if (group >= kHeadGroups || h >= heads) continue;
    float* const to =
        Partials(p, row, first_head + h).values + part * kHeadDim + index % kPairs * 2;
    to[0] = o[i][0];
    to[1] = o[i][1];
  }
  if (index < heads) {
    const Partials partials(p, row, first_head + index);
    partials.maxima[part] = shared.maxima[index];
    partials.sums[part] = shared.sums[index];
  }
}

/// Re-runs the heads whose flag is set. Every thread takes part, after a block barrier.
template <int kThreads>
BROACH_DEVICE void redo_heads(Thread thread, const Params& p, const Selection& selection, int row,
                              int kv_head, int first_head, int heads, const unsigned* redo,
                              RerunShared& shared) {
  if constexpr (kControl == Control::kRerunDropped) return;
  BROACH_ROLLED
  for (int h = 0; h < heads; ++h) {
    if (redo[h] == 0) continue;
    rerun<kThreads>(thread, p, selection, row, kv_head, first_head + h, shared);
    sync_block(thread);
  }
}

/// Folds every part of a row as it comes, and writes the outputs.
BROACH_DEVICE void fold_parts(Thread thread, const Params& p, const Selection& selection,
                              const KvHead& cache, int row, int kv_head, int heads,
                              ScalarShared& shared) {
  const int index = static_cast<int>(thread.index());
  const int group = index / kPairs;
  const int first_head = kv_head * heads;
  Outputs row_o = {};
  if (index < heads) {
    shared.row_maxima[index] = -infinity();
    shared.row_sums[index] = 0.0f;
    shared.redo[index] = 0;
  }
  BROACH_ROLLED
  for (int n = 0; n < part_count_of(p); ++n) {
    const Part part = part_of(p, selection, n);
    if (part.first >= part.last) break;
    Outputs o;
    walk_part(thread, p, selection, cache, heads, part, shared, o);
    if (index < heads) {
      shared.joins[index] = rescale_for(shared.row_maxima[index], shared.maxima[index]);
      shared.row_sums[index] = shared.joins[index].join(shared.row_sums[index], shared.sums[index]);
    }
    sync_block(thread);
    BROACH_UNROLL
    for (int i = 0; i < kThreadHeads; ++i) {
      const int h = group + i * kHeadGroups;
      if (group >= kHeadGroups || h >= heads) continue;
      row_o[i][0] = shared.joins[h].join(row_o[i][0], o[i][0]);
      row_o[i][1] = shared.joins[h].join(row_o[i][1], o[i][1]);
    }
  }
  sync_block(thread);
  const bool is_empty = selection.length() == 0;
  BROACH_UNROLL
  for (int i = 0; i < kThreadHeads; ++i) {
    const int h = group + i * kHeadGroups;
    if (group >= kHeadGroups || h >= heads) continue;
    Element* const out = out_at(p, row, first_head + h) + index % kPairs * 2;
    BROACH_UNROLL
    for (int e = 0; e < 2; ++e) {
      put(out + e, is_empty ? 0.0f : div_rn(row_o[i][e], shared.row_sums[h]));
      if (!is_finite_element(out[e])) shared.redo[h] = 1;
    }
  }
  sync_block(thread);
  redo_heads<kScalarThreads>(thread, p, selection, row, kv_head, first_head, heads, shared.redo,
                             shared.rerun);
}

BROACH_GLOBAL(broach_sparse_rows_scalar, kScalarThreads, BroachSparseRows, ScalarShared) {
  const int row = static_cast<int>(thread.block_x());
  const int kv_head = static_cast<int>(thread.block_y());
  const int split = static_cast<int>(thread.block_z());
  const int index = static_cast<int>(thread.index());
  const int heads = ratio_of(params);
  const Selection selection(params, row, kv_head);
  if constexpr (kChecked) check_selection(thread, params, selection);
  const KvHead cache(params, selection.slot, kv_head);
  BROACH_ROLLED
  for (int at = index * 8; at < heads * kHeadDim; at += kScalarThreads * 8) {
    const int h = at / kHeadDim;
    const int dim = at % kHeadDim;
    copy8(&shared.q[h][dim], query_at(params, row, kv_head * heads + h) + dim);
  }
  if (params.splits == 1) {
    fold_parts(thread, params, selection, cache, row, kv_head, heads, shared);
    return;
  }
  const Part part = part_of(params, selection, split);
  if (part.first >= part.last) return;
  Outputs o;
  walk_part(thread, params, selection, cache, heads, part, shared, o);
  leave_part(thread, params, row, kv_head * heads, heads, split, shared, o);
}

struct MergeShared {
  unsigned redo[1];
  RerunShared rerun;
};

/// Joins the parts of one (row, query head); grid = (rows, query heads, 1).
BROACH_GLOBAL(broach_sparse_rows_merge, kMergeThreads, BroachSparseRows, MergeShared) {
  const int row = static_cast<int>(thread.block_x());
  const int head = static_cast<int>(thread.block_y());
  const int kv_head = head / ratio_of(params);
  const int index = static_cast<int>(thread.index());
  const Selection selection(params, row, kv_head);
  const Partials partials(params, row, head);
  constexpr int kValues = (kHeadDim + kMergeThreads - 1) / kMergeThreads;
  float o[kValues] = {};
  float l = 0.0f;
  float maximum = -infinity();
  BROACH_ROLLED
  for (int n = 0; n < part_count_of(params); ++n) {
    const Part part = part_of(params, selection, n);
    if (part.first >= part.last) break;
    const Rescale rescale = rescale_for(maximum, partials.maxima[n]);
    l = rescale.join(l, partials.sums[n]);
    BROACH_UNROLL
    for (int i = 0; i < kValues; ++i) {
      const int dim = i * kMergeThreads + index;
      if (dim < kHeadDim) o[i] = rescale.join(o[i], partials.values[n * kHeadDim + dim]);
    }
  }
  if (index == 0) shared.redo[0] = 0;
  sync_block(thread);
  const bool is_empty = selection.length() == 0;
  BROACH_UNROLL
  for (int i = 0; i < kValues; ++i) {
    const int dim = i * kMergeThreads + index;
    if (dim >= kHeadDim) continue;
    Element* const out = out_at(params, row, head) + dim;
    put(out, is_empty ? 0.0f : div_rn(o[i], l));
    if (!is_finite_element(*out)) shared.redo[0] = 1;
  }
  sync_block(thread);
  redo_heads<kMergeThreads>(thread, params, selection, row, kv_head, head, 1, shared.redo,
                            shared.rerun);
}

}  // namespace broach::sparse_rows
