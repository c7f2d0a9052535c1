#pragma once

// A prefill block whose warps multiply their own bands, by mma.sync, and meet at every piece of
// keys.
//
// Block: 64 consecutive rows of one sequence x one query head, kPrefillWarps warps. Every band's
// warp reads the tile's K and V for itself. Memory: queries [64][D], then the pieces' ring.

#include "tiles/fragments.cuh"
#include "tiles/mma.cuh"
#include "window_rows/prefill_band.cuh"

namespace broach::window_rows {

using BlockShared = PrefillShared;
static_assert(sizeof(BlockShared) == kPrefillSharedBytes, "the renderer states the same size");

BROACH_DEVICE BlockShared& block_shared(Thread thread) {
  return *static_cast<BlockShared*>(dynamic_shared(thread));
}

// The outputs of 192 columns and more leave no registers to have all of their products in the
// making.
constexpr int kParts = kPieceColumns >= 192 ? 2 : 1;
constexpr int kPartChunks = kChunks / kParts;

/// Dot products of this warp's 16 rows with a tile's keys: the slice at hand, and the sum of those
/// before it.
struct BandScores {
  float slice[kKeyBlocks][4];
  float sum[kKeyBlocks][4];

  /// The whole products, once every slice has ended.
  BROACH_DEVICE float (&dots())[kKeyBlocks][4] {
    if constexpr (kHeadDim > kSliceDims) {
      return sum;
    } else {
      return slice;
    }
  }
};

/// Ends a slice: it joins the sum, in slice order.
BROACH_DEVICE void end_slice(BandScores& scores, bool is_first) {
  BROACH_UNROLL
  for (int block = 0; block < kKeyBlocks; ++block) {
    BROACH_UNROLL
    for (int e = 0; e < 4; ++e) {
      float& sum = scores.sum[block][e];
      float& slice = scores.slice[block][e];
      sum = is_first ? slice : add_rn(sum, slice);
      slice = 0.0f;
    }
  }
}

static_assert(kHeadDim <= kSliceDims || kPieces == 1 || kPieceDims % kSliceDims == 0,
              "a slice ends where a piece does");

/// Adds one K piece, whose first dim is `first_dim`, to the dot products.
BROACH_DEVICE void score_band(Thread thread, const unsigned short* queries,
                              const unsigned short* piece, int first_dim, BandScores& scores) {
  BROACH_UNROLL
  for (int step = 0; step < kPieceDims / 16; ++step) {
    const int dim = first_dim + step * 16;
    unsigned a[4];
    load_a(thread, a, queries + dim, kPrefillQueryStride);
    BROACH_UNROLL
    for (int block = 0; block < kKeyBlocks; block += 2) {
      unsigned b[4];
      load_b_two_blocks(thread, b, piece + block * 8 * kPieceStride + step * 16, kPieceStride);
      const unsigned first[2] = {b[0], b[1]};
      const unsigned second[2] = {b[2], b[3]};
      mma_m16n8k16<kHalf>(thread, scores.slice[block], a, first);
      mma_m16n8k16<kHalf>(thread, scores.slice[block + 1], a, second);
    }
    // Slices end where pieces do, or several lie in the only one.
    const int end = step * 16 + 16;
    if (kHeadDim > kSliceDims && (end % kSliceDims == 0 || end == kPieceDims)) {
      end_slice(scores, first_dim == 0 && end <= kSliceDims);
    }
  }
}

/// pv of a chunk of columns.
BROACH_DEVICE void chunk_product(Thread thread, const BandWeights& weights,
                                 const unsigned short* values, float (&pv)[kChunkBlocks][4]) {
  BROACH_UNROLL
  for (int block = 0; block < kChunkBlocks; ++block) {
    BROACH_UNROLL
    for (int e = 0; e < 4; ++e) pv[block][e] = 0.0f;
  }
  BROACH_UNROLL
  for (int step = 0; step < kTileSteps; ++step) {
    BROACH_UNROLL
    for (int block = 0; block < kChunkBlocks; block += 2) {
      unsigned b[4];
      load_b_transposed(thread, b, values + step * 16 * kPieceStride + block * 8, kPieceStride);
      BROACH_UNROLL
      for (int half = 0; half < kPrefillHalves; ++half) {
        const unsigned first[2] = {b[0], b[1]};
        const unsigned second[2] = {b[2], b[3]};
        mma_m16n8k16<kHalf>(thread, pv[block], weights.a[half][step], first);
        mma_m16n8k16<kHalf>(thread, pv[block + 1], weights.a[half][step], second);
      }
    }
  }
}

/// Folds one tile into a band's rows, taking the tile's pieces from the feed.
///
/// With `clean`, non-finite values are taken out before.
BROACH_DEVICE void fold_tile(Thread thread, const BroachWindowRowsDecode& p,
                             const PrefillTask& task, PrefillShared& shared, int tile, bool clean,
                             PieceFeed<kPrefillThreads, kPrefillOrder>& feed, BandRows& rows,
                             BandOutputs& outputs) {
  const unsigned short* const queries = shared.q + band_of(thread) * 16 * kPrefillQueryStride;
  BandScores scores = {};
  BROACH_ROLLED
  for (int piece = 0; piece < kPieces; ++piece) {
    score_band(thread, queries, feed.take(thread), piece * kPieceDims, scores);
  }
  BandWeights weights;
  weigh_band(thread, p, task, shared, tile, rows, scores.dots(), weights);
  BROACH_ROLLED
  for (int piece = 0; piece < kPieces; ++piece) {
    unsigned short* const stage = feed.take(thread);
    if (clean) clean_piece(thread, p, task, tile, stage, shared);
    const unsigned short* const values = stage + column_part_of(thread) * kPieceColumns;
    // The outputs are registers, which no run-time index reaches; the products are code enough to
    // have once for all pieces, and for all parts of a wide one.
    BROACH_ROLLED
    for (int part = 0; part < kParts; ++part) {
      BROACH_UNROLL
      for (int chunk = 0; chunk < kPartChunks; ++chunk) {
        float pv[kChunkBlocks][4];
        chunk_product(thread, weights, values + (part * kPartChunks + chunk) * kChunkColumns, pv);
        BROACH_UNROLL
        for (int at = 0; at < kPieces * kParts; ++at) {
          if (at != piece * kParts + part) continue;
          join_chunk(weights, pv, outputs.o[at / kParts][at % kParts * kPartChunks + chunk]);
        }
      }
    }
  }
}

/// Folds the block's tiles into fresh rows. Says in `shared.unclean` whether they have to be folded
/// once more, clean.
BROACH_DEVICE void fold_tiles(Thread thread, const BroachWindowRowsDecode& p,
                              const PrefillTask& task, const KeyRange& keys, bool clean,
                              PrefillShared& shared, BandRows& rows, BandOutputs& outputs) {
  start_band(rows, outputs);
  const int first = keys.first_tile();
  const int last = keys.last_tile();
  PieceFeed<kPrefillThreads, kPrefillOrder> feed(p, task.kv_head, task.slot, keys, first, last,
                                                 shared.pieces);
  feed.start(thread);
  BROACH_ROLLED
  for (int tile = first; tile <= last; ++tile) {
    const int turn = kPrefillOrder == TileOrder::kUp ? tile : first + last - tile;
    fold_tile(thread, p, task, shared, turn, clean, feed, rows, outputs);
  }
  if (may_hold_unseen(rows, outputs)) shared.unclean[0] = 1;
}

}  // namespace broach::window_rows
