#pragma once

// One warp's band of 16 rows against one tile of keys: the online softmax, and the rescale of O.
//
// Rows are the MMA's M side, keys its N side; P goes from accumulators to operands in registers.
// Above head_dim 256 two warps share a band: each computes its scores and has half of the output
// columns. Which instruction multiplies, and when KV stages come, is prefill_warp.cuh's or
// prefill_warpgroup.cuh's; a lane holds the same elements with both.
//
// V of keys that some rows of a block see and others do not is in every row's product: 0 x infinity
// would reach rows that do not see the key. A sum that was not finite once stays so. Where one is
// not at its end, of a row that saw some tile in part, the block's tiles run once more with
// non-finite values as zero (clean_stage), which changes nothing for rows that do not see them; the
// others are left to the float64 re-run, as they would be anyway.

#include "window_rows/prefill_rows.cuh"
#include "window_rows/softmax.cuh"

namespace broach::window_rows {

constexpr int kBands = kConfig.rows / 16;
constexpr int kColumnSplit = kConfig.warps / kBands;
constexpr int kKeyBlocks = kConfig.tile_keys / 8;
constexpr int kTileSteps = kConfig.tile_keys / 16;

// Output columns of a warp in one stage, worked on in chunks that keep their product in registers:
// swizzled tiles, where warpgroups multiply.
constexpr int kStageColumns = kConfig.stage_dims / kColumnSplit;
// Where a warp's outputs take 128 registers already, P's second half, the scores of earlier slices
// or a generic kernel's run-time values leave room for the smaller chunk only.
constexpr bool kWideChunks =
    kStageColumns % 32 == 0 &&
    (kConfig.head_dim < 256 || !(kConfig.generic || kConfig.p32 || kConfig.head_dim > kSliceDims));
constexpr int kChunkColumns = kConfig.swizzled ? kSwizzleColumns : kWideChunks ? 32 : 16;
constexpr int kChunks = kStageColumns / kChunkColumns;
constexpr int kChunkBlocks = kChunkColumns / 8;

/// The band of this thread's warp, and which share of each stage's columns it has.
BROACH_DEVICE int band_of(Thread thread) { return static_cast<int>(thread.warp()) % kBands; }
BROACH_DEVICE int column_part_of(Thread thread) { return static_cast<int>(thread.warp()) / kBands; }

/// What a warp's lane keeps of its two rows, lane / 4 and lane / 4 + 8 of the band.
struct BandRows {
  float maximum[2];
  float sum[2];
  bool partly;  ///< Whether one of them saw some keys of a tile, but not all.
};

/// A lane's share of a band's running sums: o of its two rows, by stage, chunk and column block.
struct BandOutputs {
  float o[kStagesOfK][kChunks][kChunkBlocks][4];
};

/// Rows that have not seen a tile.
BROACH_DEVICE void start_band(BandRows& rows, BandOutputs& outputs) {
  BROACH_UNROLL
  for (int r = 0; r < 2; ++r) {
    rows.maximum[r] = -infinity();
    rows.sum[r] = 0.0f;
  }
  rows.partly = false;
  BROACH_UNROLL
  for (int i = 0; i < kStagesOfK * kChunks * kChunkBlocks; ++i) {
    BROACH_UNROLL
    for (int e = 0; e < 4; ++e) {
      outputs.o[i / kChunkBlocks / kChunks][i / kChunkBlocks % kChunks][i % kChunkBlocks][e] = 0.0f;
    }
  }
}

/// P of a tile as the operand of P x V, and how the tile joins the running sums.
struct BandP {
  unsigned a[kHalves][kTileSteps][4];
  Rescale rescales[2];
  bool sees[2];  ///< Whether the row sees a key of the tile.
};

/// The softmax of a tile: turns dot products into P, and moves the rows' maxima and sums.
///
/// A row's keys are looked up here, tile by tile: registers are short.
BROACH_DEVICE void softmax_band(Thread thread, const Params& params, const PrefillTask& task,
                                const PrefillShared& shared, int tile, BandRows& rows,
                                float (&scores)[kKeyBlocks][4], BandP& p) {
  const int lane = static_cast<int>(thread.lane());
  const int band = band_of(thread);
  const int first_key = tile * kConfig.tile_keys;
  const int last_key = first_key + kConfig.tile_keys - 1;
  const float factor = attention::exponent_factor<kSoftmax>(params.attention);
  // Ends below every maximum. With ex2 a NaN, which no maximum takes: -infinity times a negative
  // scale would be the greatest; its p is replaced.
  const float unseen_score = kSoftmax.is_ex2() ? float_of(0x7fffffffu) : -infinity();
  BROACH_UNROLL
  for (int r = 0; r < 2; ++r) {
    const KeyRange keys = keys_of(params, task, shared, band * 16 + lane / 4 + 8 * r);
    const bool whole = keys.first <= first_key && keys.last >= last_key;
    p.sees[r] = keys.first <= last_key && keys.last >= first_key;
    rows.partly = rows.partly || (p.sees[r] && !whole);
    BROACH_UNROLL
    for (int block = 0; block < kKeyBlocks; ++block) {
      BROACH_UNROLL
      for (int i = 0; i < 2; ++i) {
        float& score = scores[block][2 * r + i];
        score = attention::score_of<kSoftmax>(params.attention, score);
      }
    }
    if (!whole) {
      BROACH_UNROLL
      for (int block = 0; block < kKeyBlocks; ++block) {
        BROACH_UNROLL
        for (int i = 0; i < 2; ++i) {
          if (!keys.holds(first_key + block * 8 + lane % 4 * 2 + i)) {
            scores[block][2 * r + i] = unseen_score;
          }
        }
      }
    }
    float most = -infinity();
    BROACH_UNROLL
    for (int block = 0; block < kKeyBlocks; ++block) {
      most =
          larger(most, larger(attention::exponent_of<kSoftmax>(scores[block][2 * r], factor),
                              attention::exponent_of<kSoftmax>(scores[block][2 * r + 1], factor)));
    }
    most = larger(most, shuffle_xor(thread, most, 1));
    most = larger(most, shuffle_xor(thread, most, 2));
    // Of a row that sees no key every p is exp(-infinity) = 0, whatever it is relative to.
    const float base = p.sees[r] ? TileSoftmax::base(rows.maximum[r], most) : 0.0f;
    if constexpr (kSoftmax.is_ex2()) {
      BROACH_UNROLL
      for (int block = 0; block < kKeyBlocks; ++block) {
        BROACH_UNROLL
        for (int i = 0; i < 2; ++i) {
          float& score = scores[block][2 * r + i];
          score = attention::p_of<kSoftmax>(score, factor, base);
        }
      }
      if (!whole) {
        BROACH_UNROLL
        for (int block = 0; block < kKeyBlocks; ++block) {
          BROACH_UNROLL
          for (int i = 0; i < 2; ++i) {
            if (!keys.holds(first_key + block * 8 + lane % 4 * 2 + i)) {
              scores[block][2 * r + i] = 0.0f;
            }
          }
        }
      }
    }
    float sum = 0.0f;
    BROACH_UNROLL
    for (int block = 0; block < kKeyBlocks; ++block) {
      float values[2];
      BROACH_UNROLL
      for (int i = 0; i < 2; ++i) {
        const float score = scores[block][2 * r + i];
        values[i] = kSoftmax.is_ex2() ? score : attention::p_of<kSoftmax>(score, factor, base);
      }
      const attention::SplitPPair halves = attention::split_p_pair<kSoftmax>(values[0], values[1]);
      const float pair = add_rn(values[0], values[1]);
      sum = block == 0 ? pair : add_rn(sum, pair);
      // Key block 2k is the low half of step k's operand, 2k + 1 the high half.
      const int word = block % 2 * 2 + r;
      p.a[0][block / 2][word] = halves.high;
      if constexpr (kConfig.p32) p.a[1][block / 2][word] = halves.low;
    }
    sum = attention::sum_of_classes(thread, sum);
    if (p.sees[r]) {
      p.rescales[r] = TileSoftmax::rescale(rows.maximum[r], most);
      rows.sum[r] = p.rescales[r].apply(rows.sum[r], sum);
    }
  }
}

/// Whether a value that a row does not see may have reached its outputs.
BROACH_DEVICE bool may_hold_unseen(const BandRows& rows, const BandOutputs& outputs) {
  if (!rows.partly) return false;
  bool finite = true;
  BROACH_UNROLL
  for (int i = 0; i < kStagesOfK * kChunks * kChunkBlocks; ++i) {
    BROACH_UNROLL
    for (int e = 0; e < 4; ++e) {
      finite = finite && is_finite(outputs.o[i / kChunkBlocks / kChunks][i / kChunkBlocks % kChunks]
                                            [i % kChunkBlocks][e]);
    }
  }
  return !finite;
}

/// Rescales the outputs of the rows that see a key of the tile, and adds a chunk's product.
BROACH_DEVICE void rescale_chunk(const BandP& p, const float (&pv)[kChunkBlocks][4],
                                 float (&o)[kChunkBlocks][4]) {
  BROACH_UNROLL
  for (int r = 0; r < 2; ++r) {
    if (!p.sees[r]) continue;
    BROACH_UNROLL
    for (int block = 0; block < kChunkBlocks; ++block) {
      BROACH_UNROLL
      for (int e = 2 * r; e < 2 * r + 2; ++e) {
        o[block][e] = p.rescales[r].apply(o[block][e], pv[block][e]);
      }
    }
  }
}

/// Takes the non-finite values of a stage as zero and leaves every row that sees one to the float64
/// re-run. Ends in a block barrier.
BROACH_DEVICE void clean_stage(Thread thread, const Params& p, const PrefillTask& task, int tile,
                               unsigned short* stage, PrefillShared& shared) {
  constexpr int kVectors = kConfig.stage_dims / 8;
  BROACH_ROLLED
  for (int vector = static_cast<int>(thread.index()); vector < kConfig.tile_keys * kVectors;
       vector += kConfig.threads()) {
    unsigned short* const values =
        stage + attention::stage_at<kPipeline>(vector / kVectors, vector % kVectors * 8);
    bool finite = true;
    BROACH_ROLLED
    for (int i = 0; i < 8; ++i) {
      if (is_finite_half<kConfig.dtype>(values[i])) continue;
      values[i] = 0;
      finite = false;
    }
    if (finite) continue;
    BROACH_ROLLED
    for (int row = 0; row < task.rows; ++row) {
      const KeyRange keys = keys_of(p, task, shared, row);
      if (keys.holds(tile * kConfig.tile_keys + vector / kVectors)) shared.redo[row] = 1;
    }
  }
  sync_block(thread);
}

}  // namespace broach::window_rows
