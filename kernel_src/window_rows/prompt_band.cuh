#pragma once

// One warp's band of 16 rows against one tile of keys: scores, weights, products.
//
// Rows are the matrix step's M side, keys its N side; P goes from accumulators to operands in
// registers. Above head_dim 256 two warps share a band: each computes its scores and has half of
// the output columns.
//
// V of keys that some rows of a block see and others do not is in every row's product: 0 x infinity
// would reach rows that do not see the key. Where a partly seen tile's product is not finite, the
// block's tiles run once more with non-finite values as zero (clean_piece), which changes nothing
// for rows that do not see them; the others are left to the float64 re-run, as they would be
// anyway.
//
// The including source has included an arithmetic: kSliceDims, weight_base, Fold and fold_factors
// are its.

#include "tiles/fragments.cuh"
#include "tiles/mma.cuh"
#include "window_rows/prompt_rows.cuh"
#include "window_rows/softmax.cuh"

namespace broach::window_rows {

constexpr int kColumnSplit = kPromptWarps / 4;
constexpr int kKeyBlocks = kTileKeys / 8;
constexpr int kTileSteps = kTileKeys / 16;
constexpr int kPromptHalves = kP32 ? 2 : 1;

// Output columns of a warp in one piece, worked on in chunks that keep their product in registers.
constexpr int kPieceColumns = kPieceDims / kColumnSplit;
// Where a warp's outputs take 128 registers already, P's second half, the scores of earlier slices
// or a generic kernel's run-time values leave room for the smaller chunk only.
constexpr bool kWideChunks =
    kPieceColumns % 32 == 0 && (kHeadDim < 256 || !(kGeneric || kP32 || kHeadDim > kSliceDims));
constexpr int kChunkColumns = kWideChunks ? 32 : 16;
constexpr int kChunks = kPieceColumns / kChunkColumns;
constexpr int kChunkBlocks = kChunkColumns / 8;
// The outputs of 256 columns leave no registers to have all of their products in the making.
constexpr int kParts = kPieceColumns >= 256 ? 2 : 1;
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
    load_a(thread, a, queries + dim, kPromptQueryStride);
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

/// What a warp's lane keeps of its two rows, lane / 4 and lane / 4 + 8 of the band.
struct BandRows {
  float maximum[2];
  float sum[2];
};

/// P of a tile as the operand of P x V, and how it joins.
struct BandWeights {
  unsigned a[kPromptHalves][kTileSteps][4];
  Fold folds[2];
  bool sees[2];  ///< Whether the row sees a key of the tile.
};

/// Turns a tile's dot products into weights and joins the rows' maxima and sums.
///
/// Says whether one of the lane's rows sees some of the tile's keys, but not all. A row's keys are
/// looked up here, tile by tile: registers are short.
BROACH_DEVICE bool weigh_band(Thread thread, const BroachWindowRowsDecode& p,
                              const PromptTask& task, const PromptShared& shared, int tile,
                              BandRows& rows, float (&scores)[kKeyBlocks][4],
                              BandWeights& weights) {
  const int lane = static_cast<int>(thread.lane());
  const int band = static_cast<int>(thread.warp()) % 4;
  const int first_key = tile * kTileKeys;
  const int last_key = first_key + kTileKeys - 1;
  bool partly = false;
  BROACH_UNROLL
  for (int r = 0; r < 2; ++r) {
    const KeyRange keys = keys_of(p, task, shared, band * 16 + lane / 4 + 8 * r);
    weights.sees[r] = keys.first <= last_key && keys.last >= first_key;
    partly = partly || (weights.sees[r] && (keys.first > first_key || keys.last < last_key));
    float most = -infinity();
    BROACH_UNROLL
    for (int block = 0; block < kKeyBlocks; ++block) {
      BROACH_UNROLL
      for (int i = 0; i < 2; ++i) {
        float& s = scores[block][2 * r + i];
        s = keys.holds(first_key + block * 8 + lane % 4 * 2 + i) ? score_of(p, s) : -infinity();
        most = larger(most, s);
      }
    }
    most = larger(most, shuffle_xor(thread, most, 1));
    most = larger(most, shuffle_xor(thread, most, 2));
    const float base = weight_base(rows.maximum[r], most);
    float sum = 0.0f;
    BROACH_UNROLL
    for (int block = 0; block < kKeyBlocks; ++block) {
      float weight[2];
      BROACH_UNROLL
      for (int i = 0; i < 2; ++i) {
        weight[i] = weights.sees[r] ? weight_of(scores[block][2 * r + i], base) : 0.0f;
      }
      const WeightPair halves = split_weights(weight[0], weight[1]);
      const float pair = add_rn(weight[0], weight[1]);
      sum = block == 0 ? pair : add_rn(sum, pair);
      // Key block 2k is the low half of step k's operand, 2k + 1 the high half.
      const int word = block % 2 * 2 + r;
      weights.a[0][block / 2][word] = halves.high;
      if constexpr (kP32) weights.a[1][block / 2][word] = halves.low;
    }
    sum = join_classes(thread, sum);
    if (weights.sees[r]) {
      weights.folds[r] = fold_factors(rows.maximum[r], most);
      rows.sum[r] = weights.folds[r].join(rows.sum[r], sum);
    }
  }
  return partly;
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
      for (int half = 0; half < kPromptHalves; ++half) {
        const unsigned first[2] = {b[0], b[1]};
        const unsigned second[2] = {b[2], b[3]};
        mma_m16n8k16<kHalf>(thread, pv[block], weights.a[half][step], first);
        mma_m16n8k16<kHalf>(thread, pv[block + 1], weights.a[half][step], second);
      }
    }
  }
}

BROACH_DEVICE bool is_finite_chunk(const float (&pv)[kChunkBlocks][4]) {
  bool finite = true;
  BROACH_UNROLL
  for (int block = 0; block < kChunkBlocks; ++block) {
    BROACH_UNROLL
    for (int e = 0; e < 4; ++e) finite = finite && is_finite(pv[block][e]);
  }
  return finite;
}

/// Joins a chunk's product to the outputs of the rows that see a key of the tile.
BROACH_DEVICE void join_chunk(const BandWeights& weights, const float (&pv)[kChunkBlocks][4],
                              float (&o)[kChunkBlocks][4]) {
  BROACH_UNROLL
  for (int r = 0; r < 2; ++r) {
    if (!weights.sees[r]) continue;
    BROACH_UNROLL
    for (int block = 0; block < kChunkBlocks; ++block) {
      BROACH_UNROLL
      for (int e = 2 * r; e < 2 * r + 2; ++e) {
        o[block][e] = weights.folds[r].join(o[block][e], pv[block][e]);
      }
    }
  }
}

/// Takes the non-finite values of a piece as zero and leaves every row that sees one to the float64
/// re-run. Ends in a block barrier.
BROACH_DEVICE void clean_piece(Thread thread, const BroachWindowRowsDecode& p,
                               const PromptTask& task, int tile, unsigned short* piece,
                               PromptShared& shared) {
  constexpr int kVectors = kPieceDims / 8;
  BROACH_ROLLED
  for (int vector = static_cast<int>(thread.index()); vector < kTileKeys * kVectors;
       vector += kPromptThreads) {
    unsigned short* const values = piece + vector / kVectors * kPieceStride + vector % kVectors * 8;
    bool finite = true;
    BROACH_ROLLED
    for (int i = 0; i < 8; ++i) {
      if (is_finite_half<kHalf>(values[i])) continue;
      values[i] = 0;
      finite = false;
    }
    if (finite) continue;
    BROACH_ROLLED
    for (int row = 0; row < task.rows; ++row) {
      const KeyRange keys = keys_of(p, task, shared, row);
      if (keys.holds(tile * kTileKeys + vector / kVectors)) shared.redo[row] = 1;
    }
  }
  sync_block(thread);
}

}  // namespace broach::window_rows
