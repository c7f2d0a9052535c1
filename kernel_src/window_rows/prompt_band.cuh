#pragma once

// One warp's band of 16 rows against one tile of keys: scores, weights, products.
//
// Rows are the matrix step's M side, keys its N side; P goes from accumulators to operands in
// registers. Above head_dim 256 two warps share a band: each computes its scores and has half of
// the output columns.
//
// V of keys that some rows of a block see and others do not is in every row's product: 0 x infinity
// would reach rows that do not see the key. Where a partly seen tile's product is not finite, the
// chain runs again a row at a time with the unseen keys' values as zero.
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
// Where a warp's outputs take 128 registers already, P's second half or a generic kernel's run-time
// values leave room for the smaller chunk only.
constexpr bool kWideChunks = kPieceColumns % 32 == 0 && (kHeadDim < 256 || !(kGeneric || kP32));
constexpr int kChunkColumns = kWideChunks ? 32 : 16;
constexpr int kChunks = kPieceColumns / kChunkColumns;
constexpr int kChunkBlocks = kChunkColumns / 8;

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
    const int end = dim + 16;
    if (kHeadDim > kSliceDims && (end % kSliceDims == 0 || end == kHeadDim)) {
      end_slice(scores, end <= kSliceDims);
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

BROACH_DEVICE unsigned pack(unsigned short low, unsigned short high) {
  return low | static_cast<unsigned>(high) << 16;
}

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
      Weight halves[2];
      BROACH_UNROLL
      for (int i = 0; i < 2; ++i) {
        weight[i] = weights.sees[r] ? weight_of(scores[block][2 * r + i], base) : 0.0f;
        halves[i] = split_weight(weight[i]);
      }
      const float pair = add_rn(weight[0], weight[1]);
      sum = block == 0 ? pair : add_rn(sum, pair);
      // Key block 2k is the low half of step k's operand, 2k + 1 the high half.
      const int word = block % 2 * 2 + r;
      weights.a[0][block / 2][word] = pack(halves[0].high, halves[1].high);
      if constexpr (kP32) weights.a[1][block / 2][word] = pack(halves[0].low, halves[1].low);
    }
    sum = join_classes(thread, sum);
    if (weights.sees[r]) {
      weights.folds[r] = fold_factors(rows.maximum[r], most);
      rows.sum[r] = weights.folds[r].join(rows.sum[r], sum);
    }
  }
  return partly;
}

/// A pair of values with those zeroed whose key is not in `keys`.
BROACH_DEVICE unsigned seen_pair(unsigned pair, const KeyRange& keys, int key) {
  return pair & ((keys.holds(key) ? 0xffffu : 0u) | (keys.holds(key + 1) ? 0xffff0000u : 0u));
}

/// pv of a chunk of columns; with `only`, keys outside it count as holding zeros.
BROACH_DEVICE void chunk_product(Thread thread, const BandWeights& weights,
                                 const unsigned short* values, int first_key, const KeyRange* only,
                                 float (&pv)[kChunkBlocks][4]) {
  const int lane = static_cast<int>(thread.lane());
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
      if (only != nullptr) {
        BROACH_UNROLL
        for (int i = 0; i < 4; ++i) {
          b[i] = seen_pair(b[i], *only, first_key + step * 16 + i % 2 * 8 + lane % 4 * 2);
        }
      }
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

/// Runs a chunk again for each of the band's rows with its unseen keys' values as zero.
BROACH_DEVICE void chunk_again(Thread thread, const BroachWindowRowsDecode& p,
                               const PromptTask& task, const PromptShared& shared, int band,
                               const BandWeights& weights, const unsigned short* values,
                               int first_key, float (&pv)[kChunkBlocks][4]) {
  const int lane = static_cast<int>(thread.lane());
  for (int row = 0; row < 16; ++row) {
    const KeyRange keys = keys_of(p, task, shared, band * 16 + row);
    float again[kChunkBlocks][4];
    chunk_product(thread, weights, values, first_key, &keys, again);
    if (lane / 4 != row % 8) continue;
    BROACH_UNROLL
    for (int block = 0; block < kChunkBlocks; ++block) {
      BROACH_UNROLL
      for (int e = 0; e < 4; ++e) {
        if (e / 2 == row / 8) pv[block][e] = again[block][e];
      }
    }
  }
}

/// pv of a chunk of columns, by the rule for values that a row does not see.
BROACH_DEVICE void tile_values(Thread thread, const BroachWindowRowsDecode& p,
                               const PromptTask& task, const PromptShared& shared, int band,
                               const BandWeights& weights, const unsigned short* values,
                               int first_key, bool band_partly, float (&pv)[kChunkBlocks][4]) {
  chunk_product(thread, weights, values, first_key, nullptr, pv);
  if (!band_partly) return;
  bool finite = true;
  BROACH_UNROLL
  for (int block = 0; block < kChunkBlocks; ++block) {
    BROACH_UNROLL
    for (int e = 0; e < 4; ++e) finite = finite && is_finite(pv[block][e]);
  }
  if (any(thread, !finite)) {
    chunk_again(thread, p, task, shared, band, weights, values, first_key, pv);
  }
}

}  // namespace broach::window_rows
