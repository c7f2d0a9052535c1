#pragma once

// The fold of a row's tiles from their partials, in tile order: the same chain, value by value, as
// the block that folds its own tiles runs. The running maximum of a maximum is exact in any order,
// so the factors of 32 tiles are computed side by side.

#include "common/platform.cuh"
#include "window_rows/float64_rerun.cuh"
#include "window_rows/tile64_arith.cuh"
#include "window_rows/tile64_partials.cuh"

namespace broach::window_rows {

constexpr int kFoldBatch = 32;
constexpr int kFoldMaxHeads = 8;

/// Output values a block folds side by side when it has several heads to fold.
constexpr int kFoldValues = 512;

struct FoldShared {
  float maxima[kFoldBatch][kFoldMaxHeads];
  float sums[kFoldBatch][kFoldMaxHeads];
  Fold folds[kFoldBatch][kFoldMaxHeads];
  float running[kFoldMaxHeads];
  float totals[kFoldMaxHeads];
  float keep[kFoldMaxHeads];
  unsigned redo[kFoldMaxHeads];
  alignas(16) unsigned char rerun[kRerunSharedBytes];
};

/// Folds up to kCount heads from `first_head` on and writes their output.
template <int kCount, int kThreads>
BROACH_DEVICE void fold_heads(Thread thread, const BroachWindowRowsDecode& p, int row, int kv_head,
                              int first_head, int slot, const KeyRange& keys, FoldShared& shared) {
  static_assert(kCount <= kFoldMaxHeads && kThreads >= kFoldMaxHeads, "one thread a head");
  constexpr int kValues = (kCount * kHeadDim + kThreads - 1) / kThreads;
  const int ratio = ratio_of(p);
  const int heads = ratio - first_head < kCount ? ratio - first_head : kCount;
  const int index = static_cast<int>(thread.index());
  const int tiles = keys.last_tile() - keys.first_tile() + 1;
  const Partials partials(p, row, kv_head);

  float o[kValues] = {};
  if (index < kCount) {
    shared.running[index] = -infinity();
    shared.totals[index] = 0.0f;
    shared.redo[index] = 0;
  }
  sync_block(thread);
  for (int start = 0; start < tiles; start += kFoldBatch) {
    const int count = tiles - start < kFoldBatch ? tiles - start : kFoldBatch;
    const auto tile_at = [&](int i) {
      return kControl == Control::kFoldReversed ? tiles - 1 - start - i : start + i;
    };
    for (int i = index; i < count * kCount; i += kThreads) {
      if (i % kCount >= heads) continue;
      const int head = first_head + i % kCount;
      shared.maxima[i / kCount][i % kCount] = partials.maximum(tile_at(i / kCount), head);
      shared.sums[i / kCount][i % kCount] = partials.sum(tile_at(i / kCount), head);
    }
    sync_block(thread);
    for (int i = index; i < count * kCount; i += kThreads) {
      const int head = i % kCount;
      if (head >= heads) continue;
      float maximum = shared.running[head];
      for (int j = 0; j < i / kCount; ++j) maximum = larger(maximum, shared.maxima[j][head]);
      shared.folds[i / kCount][head] = fold_factors(maximum, shared.maxima[i / kCount][head]);
    }
    sync_block(thread);
    if (index < heads) {
      float maximum = shared.running[index];
      float total = shared.totals[index];
      for (int i = 0; i < count; ++i) {
        maximum = larger(maximum, shared.maxima[i][index]);
        total = shared.folds[i][index].join(total, shared.sums[i][index]);
      }
      shared.running[index] = maximum;
      shared.totals[index] = total;
    }
    // Loads of several tiles are in flight before the first is joined.
    constexpr int kAhead = 8;
    for (int i = 0; i < count; i += kAhead) {
      float part[kAhead][kValues];
      BROACH_UNROLL
      for (int j = 0; j < kAhead; ++j) {
        BROACH_UNROLL
        for (int v = 0; v < kValues; ++v) {
          const int at = v * kThreads + index;
          part[j][v] = i + j < count && at < heads * kHeadDim
                           ? partials.values(tile_at(i + j), first_head)[at]
                           : 0.0f;
        }
      }
      BROACH_UNROLL
      for (int j = 0; j < kAhead; ++j) {
        if (i + j >= count) break;
        BROACH_UNROLL
        for (int v = 0; v < kValues; ++v) {
          const int head = (v * kThreads + index) / kHeadDim;
          if (head < heads) o[v] = shared.folds[i + j][head].join(o[v], part[j][v]);
        }
      }
    }
    sync_block(thread);
  }

  if (index < heads) {
    shared.keep[index] = 1.0f;
    if constexpr (kJoinsSink) {
      shared.keep[index] =
          join_sink(shared.running[index], p.sinks[kv_head * ratio + first_head + index],
                    shared.totals[index]);
    }
  }
  sync_block(thread);
  BROACH_UNROLL
  for (int v = 0; v < kValues; ++v) {
    const int at = v * kThreads + index;
    const int head = at / kHeadDim;
    if (head >= heads) continue;
    const unsigned short bits =
        narrow<kHalf>(finished(o[v], shared.totals[head], shared.keep[head]));
    p.out[row * p.out_row_stride + (kv_head * ratio + first_head + head) * p.out_head_stride +
          at % kHeadDim] = bits;
    if (!is_finite_half<kHalf>(bits)) shared.redo[head] = 1;
  }
  sync_block(thread);
  redo_heads<kThreads>(thread, p, row, kv_head, first_head, heads, slot, keys, shared.redo,
                       shared.rerun);
}

/// Block: one (row, query head); grid = query heads a KV head x KV heads x rows.
BROACH_GLOBAL(broach_window_rows_tile64_fold, kFoldThreads, BroachWindowRowsTile64Decode,
              FoldShared) {
  const BroachWindowRowsDecode& p = params.decode;
  const int row = static_cast<int>(thread.block_z());
  const int position = p.positions[row];
  const KeyRange keys{first_key(p, position), position};
  fold_heads<1, kFoldThreads>(thread, p, row, static_cast<int>(thread.block_y()),
                              static_cast<int>(thread.block_x()), p.slots[row], keys, shared);
}

}  // namespace broach::window_rows
