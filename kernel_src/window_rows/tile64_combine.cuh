#pragma once

// Combines a row's tiles from their partials, in tile order (split-KV): the same chain, value by
// value, as a CTA with all of the row's tiles runs. A running maximum is exact in any order, so the
// rescale factors of many tiles are computed side by side; then every value's chain runs alone,
// with loads of many tiles in flight.

#include "common/platform.cuh"
#include "window_rows/softmax.cuh"
#include "window_rows/tile64_workspace.cuh"

namespace broach::window_rows {

constexpr int kCombineMaxHeads = 8;

/// Output values that a CTA combines side by side when it has several heads to combine.
constexpr int kCombineValues = 512;

/// (tile, head) pairs whose rescale factors are in shared memory at a time.
constexpr int kCombineFactors = 512;

/// Tiles whose maxima are reduced first, so that a running maximum needs few steps.
constexpr int kCombineGroup = 16;

/// Partial values that a thread prefetches before it needs the first; twice that while it combines.
/// Fewer in a decode CTA, whose registers decide how many CTAs share a multiprocessor.
constexpr int kPrefetch = 32;
constexpr int kPrefetchInDecode = 16;

struct CombineShared {
  float maxima[kCombineFactors];  // [tile][head]
  float sums[kCombineFactors];
  Rescale rescales[kCombineFactors];
  float group_maxima[kCombineFactors / kCombineGroup + kCombineMaxHeads];
  float running[kCombineMaxHeads];
  float totals[kCombineMaxHeads];
  float sink_rescale[kCombineMaxHeads];
};

/// Computes the rescale factors of `count` tiles of `partials`, which `tile_at` orders.
template <int kCount, int kThreads, class TileAt>
BROACH_DEVICE void load_rescales(Thread thread, const Tile64Partials& partials, int first_head,
                                 int heads, int count, TileAt tile_at, CombineShared& shared) {
  const int index = static_cast<int>(thread.index());
  BROACH_ROLLED
  for (int i = index; i < count * kCount; i += kThreads) {
    const int head = i % kCount;
    if (head >= heads) continue;
    shared.maxima[i] = partials.maximum(tile_at(i / kCount), first_head + head);
    shared.sums[i] = partials.sum(tile_at(i / kCount), first_head + head);
  }
  sync_block(thread);
  const int groups = (count + kCombineGroup - 1) / kCombineGroup;
  BROACH_ROLLED
  for (int i = index; i < groups * kCount; i += kThreads) {
    const int start = i / kCount * kCombineGroup;
    float maximum = -infinity();
    BROACH_ROLLED
    for (int tile = start; tile < start + kCombineGroup && tile < count; ++tile) {
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
    for (int group = 0; group < tile / kCombineGroup; ++group) {
      maximum = larger(maximum, shared.group_maxima[group * kCount + head]);
    }
    BROACH_ROLLED
    for (int before = tile / kCombineGroup * kCombineGroup; before < tile; ++before) {
      maximum = larger(maximum, shared.maxima[before * kCount + head]);
    }
    shared.rescales[i] = TileSoftmax::rescale(maximum, shared.maxima[i]);
  }
  sync_block(thread);
}

/// Combines up to kCount heads from `first_head` on and writes their output. The first
/// kValueThreads threads combine values; where there are more, the next combine the sums meanwhile.
///
/// Shapes:  redo [kCount], in shared memory: says after the block's next barrier which of these
///          heads are not finite.
template <int kCount, int kThreads, int kValueThreads, int kMostPrefetch>
BROACH_DEVICE void combine_heads(Thread thread, const Params& p, int row, int kv_head,
                                 int first_head, const KeyRange& keys, CombineShared& shared,
                                 unsigned* redo) {
  static_assert(kCount <= kCombineMaxHeads && kThreads >= kCombineMaxHeads, "one thread a head");
  constexpr int kSpan = kCombineFactors / kCount;
  constexpr int kValues = (kCount * kConfig.head_dim + kValueThreads - 1) / kValueThreads;
  constexpr int kAhead = kValues < kMostPrefetch ? kMostPrefetch / kValues : 1;
  const int ratio = ratio_of(p);
  const int heads = ratio - first_head < kCount ? ratio - first_head : kCount;
  const int index = static_cast<int>(thread.index());
  const int tiles = keys.last_tile<kConfig.tile_keys>() - keys.first_tile<kConfig.tile_keys>() + 1;
  const int sum_head = kThreads > kValueThreads ? index - kValueThreads : index;
  const Tile64Partials partials(p, row, kv_head);

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
      return kConfig.has(Control::kCombineReversed) ? tiles - 1 - start - i : start + i;
    };
    const int tile_step =
        (kConfig.has(Control::kCombineReversed) ? -1 : 1) * ratio * kConfig.head_dim;
    const auto load = [&](float(&part)[kAhead][kValues], int first) {
      const float* const from = partials.values(tile_at(first), first_head) + index;
      BROACH_UNROLL
      for (int j = 0; j < kAhead; ++j) {
        BROACH_UNROLL
        for (int v = 0; v < kValues; ++v) {
          const bool there = first + j < count && index < kValueThreads &&
                             v * kValueThreads + index < heads * kConfig.head_dim;
          part[j][v] = there ? from[j * tile_step + v * kValueThreads] : 0.0f;
        }
      }
    };
    const auto combine = [&](const float(&part)[kAhead][kValues], int first) {
      BROACH_UNROLL
      for (int j = 0; j < kAhead; ++j) {
        if (first + j >= count) break;
        BROACH_UNROLL
        for (int v = 0; v < kValues; ++v) {
          const int head = (v * kValueThreads + index) / kConfig.head_dim;
          if (index < kValueThreads && head < heads) {
            o[v] = shared.rescales[(first + j) * kCount + head].apply(o[v], part[j][v]);
          }
        }
      }
    };
    const auto combine_sums = [&] {
      float maximum = shared.running[sum_head];
      float total = shared.totals[sum_head];
      BROACH_ROLLED
      for (int i = 0; i < count; ++i) {
        maximum = larger(maximum, shared.maxima[i * kCount + sum_head]);
        total =
            shared.rescales[i * kCount + sum_head].apply(total, shared.sums[i * kCount + sum_head]);
      }
      shared.running[sum_head] = maximum;
      shared.totals[sum_head] = total;
    };
    // The next values are prefetched while these are combined, the first while factors are
    // computed.
    float now[kAhead][kValues] = {};
    BROACH_ROLLED
    for (int i = -kAhead; i < count; i += kAhead) {
      float next[kAhead][kValues];
      load(next, i + kAhead);
      if (i < 0) {
        load_rescales<kCount, kThreads>(thread, partials, first_head, heads, count, tile_at,
                                        shared);
        if (sum_head >= 0 && sum_head < heads) combine_sums();
      } else {
        combine(now, i);
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
    shared.sink_rescale[index] = 1.0f;
    if constexpr (kAddsSink) {
      shared.sink_rescale[index] = attention::add_sink<kSoftmax>(
          shared.running[index], p.attention.sinks[kv_head * ratio + first_head + index],
          shared.totals[index]);
    }
  }
  sync_block(thread);
  BROACH_UNROLL
  for (int v = 0; v < kValues; ++v) {
    const int at = v * kValueThreads + index;
    const int head = at / kConfig.head_dim;
    if (index >= kValueThreads || head >= heads) continue;
    const unsigned short bits = rounded_output(
        attention::normalized<kSoftmax>(o[v], shared.totals[head], shared.sink_rescale[head]));
    elements(p.attention.out)[row * p.attention.out_row_stride +
                              (kv_head * ratio + first_head + head) * p.attention.out_head_stride +
                              at % kConfig.head_dim] = bits;
    if (!is_finite_half<kConfig.dtype>(bits)) redo[head] = 1;
  }
}

struct CombineKernelShared {
  CombineShared combine;
  unsigned redo[1];
  alignas(16) attention::Float64Shared float64;
};

/// Block: one (row, query head); grid = query heads a KV head x KV heads x rows.
BROACH_GLOBAL(broach_window_rows_tile64_combine, kCombineThreads, BroachWindowRowsTile64Decode,
              CombineKernelShared) {
  const Params& p = params.decode;
  const int row = static_cast<int>(thread.block_z());
  const KeyRange keys = keys_of_row(thread, p, row);
  const int kv_head = static_cast<int>(thread.block_y());
  const int head = static_cast<int>(thread.block_x());
  combine_heads<1, kCombineThreads, kCombineValueThreads, kPrefetch>(
      thread, p, row, kv_head, head, keys, shared.combine, shared.redo);
  sync_block(thread);
  rerun_heads<kCombineThreads>(thread, p, row, kv_head, head, 1, p.slots[row], keys, shared.redo,
                               shared.float64);
}

}  // namespace broach::window_rows
