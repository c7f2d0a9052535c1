#pragma once

// The fold of a row's tiles from their partials, in tile order: the same chain, value by value, as
// the block that folds its own tiles runs. The running maximum of a maximum is exact in any order,
// so the factors of many tiles are computed side by side; then every value's chain runs alone, with
// loads of many tiles in flight.

#include "common/platform.cuh"
#include "window_rows/float64_rerun.cuh"
#include "window_rows/tile64_arith.cuh"
#include "window_rows/tile64_partials.cuh"

namespace broach::window_rows {

constexpr int kFoldMaxHeads = 8;

/// Output values a block folds side by side when it has several heads to fold.
constexpr int kFoldValues = 512;

/// (tile, head) pairs whose factors are in shared memory at a time.
constexpr int kFoldFactors = 512;

/// Tiles whose maxima are joined first, so that a running maximum needs few steps.
constexpr int kFoldGroup = 16;

/// Partial values that a thread asks for before it needs the first; twice that while it folds.
/// Fewer in a decode block, whose registers decide how many blocks share a multiprocessor.
constexpr int kFoldAhead = 32;
constexpr int kFoldAheadInDecode = 16;

struct FoldShared {
  float maxima[kFoldFactors];  // [tile][head]
  float sums[kFoldFactors];
  Fold folds[kFoldFactors];
  float group_maxima[kFoldFactors / kFoldGroup + kFoldMaxHeads];
  float running[kFoldMaxHeads];
  float totals[kFoldMaxHeads];
  float keep[kFoldMaxHeads];
};

/// Brings the factors of `count` tiles from `partials`, whose tiles `tile_at` orders.
template <int kCount, int kThreads, class TileAt>
BROACH_DEVICE void load_factors(Thread thread, const Partials& partials, int first_head, int heads,
                                int count, TileAt tile_at, FoldShared& shared) {
  const int index = static_cast<int>(thread.index());
  BROACH_ROLLED
  for (int i = index; i < count * kCount; i += kThreads) {
    const int head = i % kCount;
    if (head >= heads) continue;
    shared.maxima[i] = partials.maximum(tile_at(i / kCount), first_head + head);
    shared.sums[i] = partials.sum(tile_at(i / kCount), first_head + head);
  }
  sync_block(thread);
  const int groups = (count + kFoldGroup - 1) / kFoldGroup;
  BROACH_ROLLED
  for (int i = index; i < groups * kCount; i += kThreads) {
    const int start = i / kCount * kFoldGroup;
    float maximum = -infinity();
    BROACH_ROLLED
    for (int tile = start; tile < start + kFoldGroup && tile < count; ++tile) {
      if (i % kCount < heads) maximum = larger(maximum, shared.maxima[tile * kCount + i % kCount]);
    }
    shared.group_maxima[i] = maximum;
  }
  sync_block(thread);
  BROACH_ROLLED
  for (int i = index; i < count * kCount; i += kThreads) {
    const int head = i % kCount;
    const int tile = i / kCount;
    if (head >= heads) continue;
    float maximum = shared.running[head];
    BROACH_ROLLED
    for (int group = 0; group < tile / kFoldGroup; ++group) {
      maximum = larger(maximum, shared.group_maxima[group * kCount + head]);
    }
    BROACH_ROLLED
    for (int before = tile / kFoldGroup * kFoldGroup; before < tile; ++before) {
      maximum = larger(maximum, shared.maxima[before * kCount + head]);
    }
    shared.folds[i] = fold_factors(maximum, shared.maxima[i]);
  }
  sync_block(thread);
}

/// Folds up to kCount heads from `first_head` on and writes their output. The first kValueThreads
/// threads fold values; where there are more, the next fold the sums meanwhile.
///
/// Shapes:  redo [kCount], in shared memory: says after the block's next barrier which of these
///          heads are not finite.
template <int kCount, int kThreads, int kValueThreads, int kMostAhead>
BROACH_DEVICE void fold_heads(Thread thread, const BroachWindowRowsDecode& p, int row, int kv_head,
                              int first_head, const KeyRange& keys, FoldShared& shared,
                              unsigned* redo) {
  static_assert(kCount <= kFoldMaxHeads && kThreads >= kFoldMaxHeads, "one thread a head");
  constexpr int kSpan = kFoldFactors / kCount;
  constexpr int kValues = (kCount * kHeadDim + kValueThreads - 1) / kValueThreads;
  constexpr int kAhead = kValues < kMostAhead ? kMostAhead / kValues : 1;
  const int ratio = ratio_of(p);
  const int heads = ratio - first_head < kCount ? ratio - first_head : kCount;
  const int index = static_cast<int>(thread.index());
  const int tiles = keys.last_tile() - keys.first_tile() + 1;
  const int sum_head = kThreads > kValueThreads ? index - kValueThreads : index;
  const Partials partials(p, row, kv_head);

  float o[kValues] = {};
  if (index < kCount) {
    shared.running[index] = -infinity();
    shared.totals[index] = 0.0f;
    if (index < heads) redo[index] = 0;
  }
  sync_block(thread);
  BROACH_ROLLED
  for (int start = 0; start < tiles; start += kSpan) {
    const int count = tiles - start < kSpan ? tiles - start : kSpan;
    const auto tile_at = [&](int i) {
      return kControl == Control::kFoldReversed ? tiles - 1 - start - i : start + i;
    };
    const int tile_step = (kControl == Control::kFoldReversed ? -1 : 1) * ratio * kHeadDim;
    const auto load = [&](float(&part)[kAhead][kValues], int first) {
      const float* const from = partials.values(tile_at(first), first_head) + index;
      BROACH_UNROLL
      for (int j = 0; j < kAhead; ++j) {
        BROACH_UNROLL
        for (int v = 0; v < kValues; ++v) {
          const bool there = first + j < count && index < kValueThreads &&
                             v * kValueThreads + index < heads * kHeadDim;
          part[j][v] = there ? from[j * tile_step + v * kValueThreads] : 0.0f;
        }
      }
    };
    const auto join = [&](const float(&part)[kAhead][kValues], int first) {
      BROACH_UNROLL
      for (int j = 0; j < kAhead; ++j) {
        if (first + j >= count) break;
        BROACH_UNROLL
        for (int v = 0; v < kValues; ++v) {
          const int head = (v * kValueThreads + index) / kHeadDim;
          if (index < kValueThreads && head < heads) {
            o[v] = shared.folds[(first + j) * kCount + head].join(o[v], part[j][v]);
          }
        }
      }
    };
    const auto join_sums = [&] {
      float maximum = shared.running[sum_head];
      float total = shared.totals[sum_head];
      BROACH_ROLLED
      for (int i = 0; i < count; ++i) {
        maximum = larger(maximum, shared.maxima[i * kCount + sum_head]);
        total = shared.folds[i * kCount + sum_head].join(total, shared.sums[i * kCount + sum_head]);
      }
      shared.running[sum_head] = maximum;
      shared.totals[sum_head] = total;
    };
    // The next values are on their way while these are joined, the first while factors are made.
    float now[kAhead][kValues] = {};
    BROACH_ROLLED
    for (int i = -kAhead; i < count; i += kAhead) {
      float next[kAhead][kValues];
      load(next, i + kAhead);
      if (i < 0) {
        load_factors<kCount, kThreads>(thread, partials, first_head, heads, count, tile_at, shared);
        if (sum_head >= 0 && sum_head < heads) join_sums();
      } else {
        join(now, i);
      }
      BROACH_UNROLL
      for (int j = 0; j < kAhead; ++j) {
        BROACH_UNROLL
        for (int v = 0; v < kValues; ++v) now[j][v] = next[j][v];
      }
    }
    sync_block(thread);
  }

  if (index < heads) {
    shared.keep[index] = 1.0f;
    if constexpr (kJoinsSink) {
      shared.keep[index] =
          join_sink(shared.running[index], p.attention.sinks[kv_head * ratio + first_head + index],
                    shared.totals[index]);
    }
  }
  sync_block(thread);
  BROACH_UNROLL
  for (int v = 0; v < kValues; ++v) {
    const int at = v * kValueThreads + index;
    const int head = at / kHeadDim;
    if (index >= kValueThreads || head >= heads) continue;
    const unsigned short bits =
        narrow<kHalf>(finished(o[v], shared.totals[head], shared.keep[head]));
    elements(p.attention.out)[row * p.attention.out_row_stride +
                              (kv_head * ratio + first_head + head) * p.attention.out_head_stride +
                              at % kHeadDim] = bits;
    if (!is_finite_half<kHalf>(bits)) redo[head] = 1;
  }
}

struct FoldKernelShared {
  FoldShared fold;
  unsigned redo[1];
  alignas(16) unsigned char rerun[kRerunSharedBytes];
};

/// Block: one (row, query head); grid = query heads a KV head x KV heads x rows.
BROACH_GLOBAL(broach_window_rows_tile64_fold, kFoldThreads, BroachWindowRowsTile64Decode,
              FoldKernelShared) {
  const BroachWindowRowsDecode& p = params.decode;
  const int row = static_cast<int>(thread.block_z());
  const int position = p.positions[row];
  const KeyRange keys{first_key(p, position), position};
  const int kv_head = static_cast<int>(thread.block_y());
  const int head = static_cast<int>(thread.block_x());
  fold_heads<1, kFoldThreads, kFoldValueThreads, kFoldAhead>(thread, p, row, kv_head, head, keys,
                                                             shared.fold, shared.redo);
  sync_block(thread);
  redo_heads<kFoldThreads>(thread, p, row, kv_head, head, 1, p.slots[row], keys, shared.redo,
                           shared.rerun);
}

}  // namespace broach::window_rows
