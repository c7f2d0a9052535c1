#pragma once

// The producer warp of a pipelined prefill: it fills the ring's slots by tensor copies, a slot as
// soon as every consumer has released it.

#include "window_rows/prefill_slots.cuh"

namespace broach::window_rows {

#if defined(BROACH_CUDA)

/// Copies tile `tile` of k or v into a slot; lane by lane of one warp.
///
/// A box is kConfig.copy_rows keys high: all 64 with every tile at once where the layout lets them
/// lie one behind another, else the largest power of two that divides the ring or the page. A box
/// that holds no key of the block lies outside the tensor: it arrives as zeros, and its page is not
/// looked up.
BROACH_DEVICE void copy_tile(Thread thread, const Params& p, const BroachTensorMap& map,
                             Barrier& full, unsigned short* tile_shared, int tile,
                             const KeyRange& keys, int kv_head, int slot) {
  constexpr int kBoxes = kTileKeys / kConfig.copy_rows;
  constexpr int kTileCopies = kBoxes == 1 ? 1 : kDimTiles;
  constexpr int kLength = kConfig.layout_length > 0 ? kConfig.layout_length : 1;
  constexpr int kOutside = 1 << 30;  // behind every cache
  BROACH_ROLLED
  for (int i = static_cast<int>(thread.lane()); i < kBoxes * kTileCopies; i += 32) {
    const int box = i % kBoxes;
    const int dim_tile = i / kBoxes;
    const int key = tile * kTileKeys + box * kConfig.copy_rows;
    BoxAt at{0, key, dim_tile, kv_head, slot};
    if (key + kConfig.copy_rows <= keys.first || key > keys.last) {
      at.row = kOutside;
    } else if constexpr (kConfig.layout == Layout::kRing) {
      at.row = key % kLength;
    } else if constexpr (kConfig.layout == Layout::kPaged) {
      const int page = key / kLength + (kConfig.has(Control::kPageOffByOne) ? 1 : 0);
      at.slot = p.cache.page_table[slot * p.cache.page_table_stride + page];
      at.row = key % kLength;
    }
    copy_box(tile_shared + dim_tile * kSwizzledElems + box * kConfig.copy_rows * kSwizzleColumns,
             &map, full, at);
  }
}

/// The producer's pass over the block's tiles: a slot holds K of the next tile and V of this one.
BROACH_DEVICE void produce_tiles(Thread thread, const BroachWindowRowsTensorPrefill& params,
                                 const PrefillTask& task, const KeyRange& keys, SlotCursor& cursor,
                                 PipelineShared& shared) {
  const Params& p = params.prefill.common;
  const int first = keys.first_tile<kTileKeys>();
  const int last = keys.last_tile<kTileKeys>();
  constexpr unsigned kTileBytes = kTileElems * 2;
  constexpr bool kUp = kPipeline.order == attention::TileOrder::kUp;
  BROACH_ROLLED
  for (int i = -1; i <= last - first; ++i) {
    const int value_tile = kUp ? first + i : last - i;
    const int key_tile = kUp ? value_tile + 1 : value_tile - 1;
    const bool has_keys = i < last - first;
    const bool has_values = i >= 0;
    Barrier& full = shared.full[cursor.slot];
    barrier_wait(shared.empty[cursor.slot], cursor.round ^ 1u);
    if (thread.lane() == 0)
      barrier_expect(full, (has_keys ? kTileBytes : 0) + (has_values ? kTileBytes : 0));
    sync_warp(thread);
    unsigned short* const slot = shared.stages + cursor.slot * 2 * kTileElems;
    if (has_keys)
      copy_tile(thread, p, params.k, full, slot, key_tile, keys, cache_head(p, task.kv_head),
                task.slot);
    if (has_values) {
      copy_tile(thread, p, params.v, full, slot + kTileElems, value_tile, keys, task.kv_head,
                task.slot);
    }
    cursor.advance();
  }
}

/// The producer warp: the block's queries, then its tiles, and once more where values are cleaned.
BROACH_DEVICE void produce(Thread thread, const BroachWindowRowsTensorPrefill& params,
                           const KeyRange& keys, PipelineShared& shared) {
  const PrefillTask& task = shared.task;
  if (thread.lane() == 0) {
    barrier_expect(shared.q_full, kConfig.rows * kConfig.head_dim * 2);
    for (int i = 0; i < kConsumers; ++i) {
      copy_box(shared.q + i * 64 * kConfig.head_dim, &params.q, shared.q_full,
               {0, task.first_row + 64 * i, 0, task.head, 0});
    }
  }
  sync_warp(thread);
  SlotCursor cursor;
  BROACH_ROLLED
  for (bool clean = false;; clean = true) {
    produce_tiles(thread, params, task, keys, cursor, shared);
    sync_block(thread);
    if (clean || shared.unclean[0] == 0) return;
  }
}

#endif

}  // namespace broach::window_rows
