#pragma once

// A prefill block whose warpgroups multiply, by wgmma: the same steps in the same order as
// prefill_warp.cuh's, from K and V that all of a block's warpgroups read.
//
// Block: 64 consecutive rows of one sequence a warpgroup x one query head; above head_dim 256 two
// warpgroups share 64 rows. They meet only where the ring of pieces makes them. Memory: queries in
// panels [64 rows][64 dims], then the ring. Chips: sm_90a.

#include "tiles/warpgroup.cuh"
#include "window_rows/piece_ring.cuh"
#include "window_rows/prefill_band.cuh"

namespace broach::window_rows {

static_assert(kTileKeys == 64 && kSliceDims == kHeadDim, "a tile is a panel high, a chain whole");

struct BlockShared : PrefillShared {
  RingBarriers barriers;
};
static_assert(sizeof(BlockShared) == kPrefillSharedBytes, "the renderer states the same size");
static_assert(kQueryElems * 2 % kPanelAlignment == 0 && kPieceElems * 2 % kPanelAlignment == 0,
              "panels follow panels");

#if defined(BROACH_CUDA)
extern __shared__ __attribute__((aligned(1024))) unsigned char broach_panels_shared[];
static_assert(kPanelAlignment == 1024, "as its memory");

BROACH_DEVICE BlockShared& block_shared(Thread /*thread*/) {
  return *reinterpret_cast<BlockShared*>(broach_panels_shared);
}
#endif

using PrefillRing = PieceRing<kPrefillThreads, kPrefillOrder>;

constexpr int kPanelElems = 64 * kPanelColumns;
constexpr unsigned long long kPanelUnits = kPanelElems * 2 / 16;  // of a descriptor
constexpr int kPiecePanels = kPieceDims / kPanelColumns;
constexpr int kChunkPanels = kPiecePanels / kColumnSplit;
static_assert(kChunks == kChunkPanels, "a chunk is a panel");

/// Dot products of the warpgroup's 64 rows with a tile's keys. While they are in the making, the
/// next pieces are asked for. `queries`: its panels.
BROACH_DEVICE void score_tile(Thread thread, const unsigned short* queries, PrefillRing& ring,
                              float (&scores)[kKeyBlocks][4]) {
  const unsigned long long a = panel_descriptor(thread, queries);
  BROACH_UNROLL
  for (int piece = 0; piece < kPieces; ++piece) {
    const unsigned long long b = panel_descriptor(thread, ring.take());
    warpgroup_begin();
    BROACH_UNROLL
    for (int step = 0; step < kPieceDims / 16; ++step) {
      const int panel = step / 4;
      const unsigned long long within = step % 4 * kSixteenColumns;
      warpgroup_step<kHalf>(scores, a + (piece * kPiecePanels + panel) * kPanelUnits + within,
                            b + panel * kPanelUnits + within, piece + step > 0);
    }
    warpgroup_commit();
    if (piece > 0) {
      warpgroup_wait<1>();
      ring.release(thread, 1);
    }
  }
  ring.ask_half(thread);
  warpgroup_wait<0>();
  warpgroup_arrived(scores);
  ring.release(thread);
}

/// Begins pv of a panel of columns, which `b` describes.
BROACH_DEVICE void begin_product(const BandWeights& weights, unsigned long long b,
                                 float (&pv)[kChunkBlocks][4]) {
  warpgroup_begin();
  BROACH_UNROLL
  for (int step = 0; step < kTileSteps; ++step) {
    BROACH_UNROLL
    for (int half = 0; half < kPrefillHalves; ++half) {
      warpgroup_step<kHalf>(pv, weights.a[half][step], b + step * kSixteenRows, step + half > 0);
    }
  }
  warpgroup_commit();
}

BROACH_DEVICE void end_product(float (&pv)[kChunkBlocks][4]) {
  warpgroup_wait<0>();
  warpgroup_arrived(pv);
}

/// clean_piece, for steps to read. Every thread of the block takes part.
BROACH_DEVICE void clean_panels(Thread thread, const BroachWindowRowsDecode& p,
                                const PrefillTask& task, int tile, unsigned short* piece,
                                PrefillShared& shared) {
  clean_piece(thread, p, task, tile, piece, shared);
  async_proxy_fence();
  sync_block(thread);
}

/// Takes a tile's pieces and gives them back.
BROACH_DEVICE void pass_tile(Thread thread, PrefillRing& ring) {
  BROACH_ROLLED
  for (int half = 0; half < 2; ++half) {
    BROACH_ROLLED
    for (int piece = 0; piece < kPieces; ++piece) {
      (void)ring.take();
      ring.release(thread);
    }
    ring.ask_half(thread);
  }
}

/// Folds one tile into a warpgroup's rows. See prefill_warp.cuh's.
BROACH_DEVICE void fold_tile(Thread thread, const BroachWindowRowsDecode& p,
                             const PrefillTask& task, PrefillShared& shared, int tile, bool clean,
                             PrefillRing& ring, BandRows& rows, BandOutputs& outputs) {
  float scores[kKeyBlocks][4];
  score_tile(thread, shared.q + band_of(thread) / kWarpgroupWarps * 64 * kHeadDim, ring, scores);
  BandWeights weights;
  weigh_band(thread, p, task, shared, tile, rows, scores, weights);
  BROACH_UNROLL
  for (int piece = 0; piece < kPieces; ++piece) {
    unsigned short* const stage = ring.take();
    if (clean) clean_panels(thread, p, task, tile, stage, shared);
    const unsigned long long columns =
        panel_descriptor(thread, stage + column_part_of(thread) * kChunks * kPanelElems);
    BROACH_UNROLL
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      float pv[kChunkBlocks][4];
      begin_product(weights, columns + chunk * kPanelUnits, pv);
      if (piece == kPieces - 1 && chunk == 0) ring.ask_half(thread);
      end_product(pv);
      join_chunk(weights, pv, outputs.o[piece][chunk]);
    }
    ring.release(thread);
  }
}

/// Folds the block's tiles into fresh rows. See prefill_warp.cuh's.
BROACH_DEVICE void fold_tiles(Thread thread, const BroachWindowRowsDecode& p,
                              const PrefillTask& task, const KeyRange& keys, bool clean,
                              BlockShared& shared, BandRows& rows, BandOutputs& outputs) {
  start_band(rows, outputs);
  // From one lane: a compiler that sees a warp take one path lets steps run on past its ends.
  const int first = shuffle(thread, keys.first_tile(), 0);
  const int last = shuffle(thread, keys.last_tile(), 0);
  const int row = band_of(thread) / kWarpgroupWarps * 64;
  const KeyRange range = keys_of_rows(thread, p, task, shared, row, row + 64);
  const KeyRange seen{shuffle(thread, range.first, 0), shuffle(thread, range.last, 0)};
  PrefillRing ring({p, task.kv_head, task.slot, keys, first, last}, shared.pieces, shared.barriers);
  copy_commit();
  ring.start(thread);
  // What the caller asked for, the queries; the ring's copies are in no group.
  copy_wait<0>();
  async_proxy_fence();
  sync_block(thread);
  BROACH_ROLLED
  for (int i = 0; i <= last - first; ++i) {
    const int tile = kPrefillOrder == TileOrder::kUp ? first + i : last - i;
    // To clean, all warpgroups meet in the same place.
    if (clean || (seen.first < (tile + 1) * kTileKeys && tile * kTileKeys <= seen.last)) {
      fold_tile(thread, p, task, shared, tile, clean, ring, rows, outputs);
    } else {
      pass_tile(thread, ring);
    }
  }
  if (may_hold_unseen(rows, outputs)) shared.unclean[0] = 1;
  ring.end(thread);
}

}  // namespace broach::window_rows
