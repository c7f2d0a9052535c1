#pragma once

// The main loop of a prefill block whose warps multiply their own bands, by mma.sync, and meet at
// every KV stage.
//
// Block: 64 consecutive rows of one sequence x one query head. Every band's warp reads the tile's K
// and V for itself. Memory: queries [64][D], then the KV stages.

#include "tiles/fragments.cuh"
#include "tiles/mma.cuh"
#include "window_rows/prefill_band.cuh"

namespace broach::window_rows {

using WarpPipeline = attention::KvPipeline<kPipeline, kConfig.threads()>;

// The outputs of 192 columns and more leave no registers for all of their products at once.
constexpr int kParts = kStageColumns >= 192 ? 2 : 1;
constexpr int kPartChunks = kChunks / kParts;

/// Dot products of this warp's 16 rows with a tile's keys: the slice at hand, and the sum of those
/// before it.
struct BandScores {
  float slice[kKeyBlocks][4];
  float sum[kKeyBlocks][4];

  /// The whole products, once every slice has ended.
  BROACH_DEVICE float (&dots())[kKeyBlocks][4] {
    if constexpr (kConfig.head_dim > kSliceDims) {
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

static_assert(kConfig.head_dim <= kSliceDims || kStagesOfK == 1 ||
                  kConfig.stage_dims % kSliceDims == 0,
              "a slice ends where a stage does");

/// Adds one stage of K, whose first dim is `first_dim`, to the dot products.
BROACH_DEVICE void score_band(Thread thread, const unsigned short* queries,
                              const unsigned short* stage, int first_dim, BandScores& scores) {
  BROACH_UNROLL
  for (int step = 0; step < kConfig.stage_dims / 16; ++step) {
    const int dim = first_dim + step * 16;
    unsigned a[4];
    load_a(thread, a, queries + dim, kPrefillQueryStride);
    BROACH_UNROLL
    for (int block = 0; block < kKeyBlocks; block += 2) {
      unsigned b[4];
      load_b_two_blocks(thread, b, stage + block * 8 * kStageStride + step * 16, kStageStride);
      const unsigned first[2] = {b[0], b[1]};
      const unsigned second[2] = {b[2], b[3]};
      mma_m16n8k16<kConfig.dtype>(thread, scores.slice[block], a, first);
      mma_m16n8k16<kConfig.dtype>(thread, scores.slice[block + 1], a, second);
    }
    // Slices end where stages do, or several lie in the only one.
    const int end = step * 16 + 16;
    if (kConfig.head_dim > kSliceDims && (end % kSliceDims == 0 || end == kConfig.stage_dims)) {
      end_slice(scores, first_dim == 0 && end <= kSliceDims);
    }
  }
}

/// pv of a chunk of columns.
BROACH_DEVICE void chunk_product(Thread thread, const BandP& p, const unsigned short* values,
                                 float (&pv)[kChunkBlocks][4]) {
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
      load_b_transposed(thread, b, values + step * 16 * kStageStride + block * 8, kStageStride);
      BROACH_UNROLL
      for (int half = 0; half < kHalves; ++half) {
        const unsigned first[2] = {b[0], b[1]};
        const unsigned second[2] = {b[2], b[3]};
        mma_m16n8k16<kConfig.dtype>(thread, pv[block], p.a[half][step], first);
        mma_m16n8k16<kConfig.dtype>(thread, pv[block + 1], p.a[half][step], second);
      }
    }
  }
}

struct WarpMainLoop {
  using Shared = PrefillShared;
  static_assert(sizeof(Shared) == kConfig.shared_bytes, "the renderer states the same size");

  BROACH_DEVICE static Shared& shared(Thread thread) {
    return *static_cast<Shared*>(dynamic_shared(thread));
  }

  /// Adds one tile to a band's rows, waiting for its KV stages.
  ///
  /// With `clean`, non-finite values are taken out before.
  BROACH_DEVICE static void add_tile(Thread thread, const Params& params, const PrefillTask& task,
                                     Shared& shared, int tile, bool clean, WarpPipeline& pipeline,
                                     BandRows& rows, BandOutputs& outputs) {
    const unsigned short* const queries = shared.q + band_of(thread) * 16 * kPrefillQueryStride;
    BandScores scores = {};
    BROACH_ROLLED
    for (int stage = 0; stage < kStagesOfK; ++stage) {
      score_band(thread, queries, pipeline.wait(thread), stage * kConfig.stage_dims, scores);
    }
    BandP p;
    softmax_band(thread, params, task, shared, tile, rows, scores.dots(), p);
    BROACH_ROLLED
    for (int stage = 0; stage < kStagesOfK; ++stage) {
      unsigned short* const v = pipeline.wait(thread);
      if (clean) clean_stage(thread, params, task, tile, v, shared);
      const unsigned short* const values = v + column_part_of(thread) * kStageColumns;
      // The outputs are registers, which no run-time index reaches; the products are code enough to
      // have once for all stages, and for all parts of a wide one.
      BROACH_ROLLED
      for (int part = 0; part < kParts; ++part) {
        BROACH_UNROLL
        for (int chunk = 0; chunk < kPartChunks; ++chunk) {
          float pv[kChunkBlocks][4];
          chunk_product(thread, p, values + (part * kPartChunks + chunk) * kChunkColumns, pv);
          BROACH_UNROLL
          for (int at = 0; at < kStagesOfK * kParts; ++at) {
            if (at != stage * kParts + part) continue;
            rescale_chunk(p, pv, outputs.o[at / kParts][at % kParts * kPartChunks + chunk]);
          }
        }
      }
    }
  }

  /// Runs over the block's tiles, for fresh rows. Says in `shared.unclean` whether they have to run
  /// once more, clean.
  BROACH_DEVICE static void run(Thread thread, const Params& params, const PrefillTask& task,
                                const KeyRange& keys, bool clean, Shared& shared, BandRows& rows,
                                BandOutputs& outputs) {
    start_band(rows, outputs);
    const int first = keys.first_tile<kConfig.tile_keys>();
    const int last = keys.last_tile<kConfig.tile_keys>();
    WarpPipeline pipeline({kv_of(params, task.slot, task.kv_head), keys, first, last},
                          shared.stages);
    pipeline.start(thread);
    BROACH_ROLLED
    for (int tile = first; tile <= last; ++tile) {
      const int at = kPipeline.order == attention::TileOrder::kUp ? tile : first + last - tile;
      add_tile(thread, params, task, shared, at, clean, pipeline, rows, outputs);
    }
    if (may_hold_unseen(rows, outputs)) shared.unclean[0] = 1;
  }
};

}  // namespace broach::window_rows
