#pragma once

// A consumer warpgroup's main loop. While it multiplies P of tile t by V, in chunks of 64 columns,
// it issues QK of tile t + 1 between the chunks, and rescales a chunk beside the WGMMAs that follow
// it. The softmax of tile t + 1 takes the last chunk's rescale in.

#include "window_rows/prefill_consumer_tile.cuh"

namespace broach::window_rows {

#if defined(BROACH_CUDA)

/// A consumer warpgroup's pass over the block's tiles, into fresh rows.
struct Consumer {
  const Params& p;
  PipelineShared& shared;
  SlotCursor cursor;
  KeyRange keys;  ///< Of all rows of the block.
  bool clean;

  /// Waits for the next slot; `value_tile` is what V in it belongs to.
  BROACH_DEVICE void wait(Thread thread, int value_tile, bool has_values) {
    barrier_wait(shared.full[cursor.slot], cursor.round);
    if (has_values && (clean || (value_tile + 1) * kTileKeys - 1 > keys.last)) {
      sync_consumers();
      clean_values(thread, value_tile, keys.last, clean,
                   shared.stages + cursor.slot * 2 * kTileElems + kTileElems, shared);
    }
  }

  /// Waits until the MMAs of this warpgroup may be issued: warpgroups take turns, a slot each, so
  /// that one's softmax runs beside the other's MMAs. The last slot of a block needs none.
  BROACH_DEVICE void wait_turn(int warpgroup) {
    if constexpr (kConsumers > 1)
      asm volatile("bar.sync %0, 256;" : : "r"(warpgroup + 2) : "memory");
  }
  BROACH_DEVICE void pass_turn(int warpgroup) {
    if constexpr (kConsumers > 1) {
      const int next = warpgroup + 1 == kConsumers ? 0 : warpgroup + 1;
      asm volatile("bar.arrive %0, 256;" : : "r"(next + 2) : "memory");
    }
  }

  /// Gives the slot back: no MMA of this warp reads it any more.
  BROACH_DEVICE void release(Thread thread) {
    sync_warp(thread);
    if (thread.lane() == 0) barrier_arrive(shared.empty[cursor.slot]);
    cursor.advance();
  }

  BROACH_DEVICE int tile_at(int i) const {
    return kPipeline.order == attention::TileOrder::kUp ? keys.first_tile<kTileKeys>() + i
                                                        : keys.last_tile<kTileKeys>() - i;
  }

  /// `first` and `last`: the i of the first and the last tile that a row of this warpgroup sees;
  /// first > last for one without rows.
  BROACH_DEVICE void run(Thread thread, int warpgroup, int first, int last, LaneRows& rows,
                         BandOutputs& outputs) {
    start_band(rows.band, outputs);
    const int count = keys.last_tile<kTileKeys>() - keys.first_tile<kTileKeys>() + 1;
    const unsigned q =
        descriptor_low(thread, shared.q + band_of(thread) / 4 * 64 * kConfig.head_dim);
    const unsigned ring = descriptor_low(thread, shared.stages);
    const auto slot_low = [&] {
      return ring + static_cast<unsigned>(cursor.slot) * 2 * kTileUnits;
    };
    const auto skip = [&](int from, int to) {
      BROACH_ROLLED
      for (int i = from; i < to; ++i) {
        wait(thread, tile_at(i), i >= 0);
        release(thread);
        if (i >= 0 && i < count - 1) {
          wait_turn(warpgroup);
          pass_turn(warpgroup);
        }
      }
    };
    if (first > last) {
      skip(-1, count);
      return;
    }
    const WholeTiles whole(thread, shared);
    skip(-1, first - 1);

    float scores[kKeyBlocks][4];
    float pv[kChunkBlocks][4];
    float most[2];
    BandP p_of_tile;
    constexpr int kSteps = kConfig.head_dim / 16;
    wait(thread, tile_at(first - 1), first > 0);
    wgmma_fence();
    issue_scores<0, kSteps>(q, slot_low(), scores);
    wgmma_commit();
    wgmma_wait<0>();
    wgmma_fence_accumulators(scores);
    release(thread);
    if (first > 0) {
      wait_turn(warpgroup);
      pass_turn(warpgroup);
    }
    finish_tile_scores(thread, p, shared, whole, tile_at(first), scores, most, rows);
    softmax_tile<false>(thread, p, scores, most, pv, outputs.o[0][0], rows, p_of_tile);

    BROACH_ROLLED
    for (int i = first; i < last; ++i) {
      wait(thread, tile_at(i), true);
      const unsigned k = slot_low();
      const unsigned v = k + kTileUnits;
      wait_turn(warpgroup);
      BROACH_UNROLL
      for (int chunk = 0; chunk < kChunks; ++chunk) {
        wgmma_fence();
        issue_product(p_of_tile, v, chunk, pv);
        wgmma_commit();
        if constexpr (kChunks >= 4) {
          if (chunk == 0) issue_scores<0, kSteps * 5 / 16>(q, k, scores);
          if (chunk == 1) issue_scores<kSteps * 5 / 16, kSteps * 5 / 8>(q, k, scores);
          if (chunk == 2) issue_scores<kSteps * 5 / 8, kSteps>(q, k, scores);
        } else if (chunk == 0) {
          issue_scores<0, kSteps>(q, k, scores);
        }
        if (chunk < kChunks - 1) {
          wgmma_commit();
          wgmma_wait<1>();
          wgmma_fence_accumulators(pv);
          rescale_part<0, 1>(p_of_tile.rescales, pv, outputs.o[0][chunk]);
        } else if constexpr (kChunks == 1) {
          wgmma_commit();
        }
      }
      pass_turn(warpgroup);
      if constexpr (kChunks == 1) {
        wgmma_wait<0>();
      } else {
        wgmma_wait<1>();
      }
      wgmma_fence_accumulators(scores);
      finish_tile_scores(thread, p, shared, whole, tile_at(i + 1), scores, most, rows);
      wgmma_wait<0>();
      wgmma_fence_accumulators(pv);
      release(thread);
      softmax_tile<true>(thread, p, scores, most, pv, outputs.o[0][kChunks - 1], rows, p_of_tile);
    }

    wait(thread, tile_at(last), true);
    const unsigned v = slot_low() + kTileUnits;
    wgmma_fence();
    issue_product(p_of_tile, v, 0, pv);
    wgmma_commit();
    // The scores' registers hold every second chunk's product.
    BROACH_UNROLL
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      float(&now)[kChunkBlocks][4] = chunk % 2 == 0 ? pv : scores;
      float(&next)[kChunkBlocks][4] = chunk % 2 == 0 ? scores : pv;
      if (chunk + 1 < kChunks) {
        wgmma_fence();
        issue_product(p_of_tile, v, chunk + 1, next);
        wgmma_commit();
        wgmma_wait<1>();
      } else {
        wgmma_wait<0>();
      }
      wgmma_fence_accumulators(now);
      rescale_part<0, 1>(p_of_tile.rescales, now, outputs.o[0][chunk]);
    }
    release(thread);
    if (last < count - 1) {
      wait_turn(warpgroup);
      pass_turn(warpgroup);
    }
    skip(last + 1, count);
  }
};

#endif

}  // namespace broach::window_rows
