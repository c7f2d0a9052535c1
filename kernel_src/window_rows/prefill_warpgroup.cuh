#pragma once

// The main loop of a prefill block whose warpgroups multiply, by WGMMA: the same steps in the same
// order as prefill_warp.cuh's, from K and V that all of a block's warpgroups read.
//
// Block: 64 consecutive rows of one sequence a warpgroup x one query head; above head_dim 256 two
// warpgroups share 64 rows. They meet only where the KV ring makes them. Memory: queries in
// swizzled tiles [64 rows][64 dims], then the ring. Chips: sm_90a.

#include "attention/kv_ring.cuh"
#include "tiles/wgmma.cuh"
#include "window_rows/prefill_band.cuh"

namespace broach::window_rows {

static_assert(kConfig.tile_keys == 64 && kSliceDims == kConfig.head_dim,
              "a tile is a swizzled tile high, a chain whole");
static_assert(kQueryElems * 2 % kSwizzleAlignment == 0 && kStageElems * 2 % kSwizzleAlignment == 0,
              "swizzled tiles stay aligned");

struct WarpgroupShared : PrefillShared {
  attention::RingBarriers<kConfig.stages> barriers;
};
static_assert(sizeof(WarpgroupShared) == kConfig.shared_bytes, "the renderer states the same size");

#if defined(BROACH_CUDA)
extern __shared__ __attribute__((aligned(1024))) unsigned char broach_swizzled_shared[];
static_assert(kSwizzleAlignment == 1024, "as its memory");
#endif

using attention::kWarpgroupWarps;
using PrefillRing = attention::KvRing<kPipeline, kConfig.threads()>;

constexpr int kSwizzledElems = 64 * kSwizzleColumns;
constexpr unsigned long long kSwizzledUnits = kSwizzledElems * 2 / 16;  // of a descriptor
constexpr int kStageTiles = kConfig.stage_dims / kSwizzleColumns;
static_assert(kChunks == kStageTiles / kColumnSplit, "a chunk is a swizzled tile");

/// Dot products of the warpgroup's 64 rows with a tile's keys. The next stages are prefetched
/// meanwhile. `queries`: its swizzled tiles.
BROACH_DEVICE void score_tile(Thread thread, const unsigned short* queries, PrefillRing& ring,
                              float (&scores)[kKeyBlocks][4]) {
  const unsigned long long a = swizzle_descriptor(thread, queries);
  BROACH_UNROLL
  for (int stage = 0; stage < kStagesOfK; ++stage) {
    const unsigned long long b = swizzle_descriptor(thread, ring.wait());
    wgmma_fence();
    BROACH_UNROLL
    for (int step = 0; step < kConfig.stage_dims / 16; ++step) {
      const int tile = step / 4;
      const unsigned long long within = step % 4 * kSixteenColumns;
      wgmma_m64n64k16<kConfig.dtype>(scores,
                                     a + (stage * kStageTiles + tile) * kSwizzledUnits + within,
                                     b + tile * kSwizzledUnits + within, stage + step > 0);
    }
    wgmma_commit();
    if (stage > 0) {
      wgmma_wait<1>();
      ring.release(thread, 1);
    }
  }
  ring.issue_half(thread);
  wgmma_wait<0>();
  wgmma_fence_accumulators(scores);
  ring.release(thread);
}

/// Issues pv of 64 columns, which `b` describes.
BROACH_DEVICE void issue_product(const BandP& p, unsigned long long b,
                                 float (&pv)[kChunkBlocks][4]) {
  wgmma_fence();
  BROACH_UNROLL
  for (int step = 0; step < kTileSteps; ++step) {
    BROACH_UNROLL
    for (int half = 0; half < kHalves; ++half) {
      wgmma_m64n64k16<kConfig.dtype>(pv, p.a[half][step], b + step * kSixteenRows, step + half > 0);
    }
  }
  wgmma_commit();
}

BROACH_DEVICE void wait_product(float (&pv)[kChunkBlocks][4]) {
  wgmma_wait<0>();
  wgmma_fence_accumulators(pv);
}

/// clean_stage, for WGMMA to read. Every thread of the block takes part.
BROACH_DEVICE void clean_swizzled_stage(Thread thread, const Params& params,
                                        const PrefillTask& task, int tile, unsigned short* stage,
                                        PrefillShared& shared) {
  clean_stage(thread, params, task, tile, stage, shared);
  async_proxy_fence();
  sync_block(thread);
}

struct WarpgroupMainLoop {
  using Shared = WarpgroupShared;

#if defined(BROACH_CUDA)
  BROACH_DEVICE static Shared& shared(Thread /*thread*/) {
    return *reinterpret_cast<Shared*>(broach_swizzled_shared);
  }
#endif

  /// Waits for a tile's stages and releases them unread.
  BROACH_DEVICE static void skip_tile(Thread thread, PrefillRing& ring) {
    BROACH_ROLLED
    for (int half = 0; half < 2; ++half) {
      BROACH_ROLLED
      for (int stage = 0; stage < kStagesOfK; ++stage) {
        (void)ring.wait();
        ring.release(thread);
      }
      ring.issue_half(thread);
    }
  }

  /// Adds one tile to a warpgroup's rows. See WarpMainLoop's.
  BROACH_DEVICE static void add_tile(Thread thread, const Params& params, const PrefillTask& task,
                                     PrefillShared& shared, int tile, bool clean, PrefillRing& ring,
                                     BandRows& rows, BandOutputs& outputs) {
    float scores[kKeyBlocks][4];
    score_tile(thread, shared.q + band_of(thread) / kWarpgroupWarps * 64 * kConfig.head_dim, ring,
               scores);
    BandP p;
    softmax_band(thread, params, task, shared, tile, rows, scores, p);
    BROACH_UNROLL
    for (int stage = 0; stage < kStagesOfK; ++stage) {
      unsigned short* const v = ring.wait();
      if (clean) clean_swizzled_stage(thread, params, task, tile, v, shared);
      const unsigned long long columns =
          swizzle_descriptor(thread, v + column_part_of(thread) * kChunks * kSwizzledElems);
      BROACH_UNROLL
      for (int chunk = 0; chunk < kChunks; ++chunk) {
        float pv[kChunkBlocks][4];
        issue_product(p, columns + chunk * kSwizzledUnits, pv);
        if (stage == kStagesOfK - 1 && chunk == 0) ring.issue_half(thread);
        wait_product(pv);
        rescale_chunk(p, pv, outputs.o[stage][chunk]);
      }
      ring.release(thread);
    }
  }

  /// Runs over the block's tiles, for fresh rows. See WarpMainLoop's.
  BROACH_DEVICE static void run(Thread thread, const Params& params, const PrefillTask& task,
                                const KeyRange& keys, bool clean, Shared& shared, BandRows& rows,
                                BandOutputs& outputs) {
    start_band(rows, outputs);
    // From one lane: a compiler that sees a warp take one path keeps WGMMAs in flight over its
    // ends.
    const int first = shuffle(thread, keys.first_tile<kConfig.tile_keys>(), 0);
    const int last = shuffle(thread, keys.last_tile<kConfig.tile_keys>(), 0);
    const int row = band_of(thread) / kWarpgroupWarps * 64;
    const KeyRange range = keys_of_rows(thread, params, task, shared, row, row + 64);
    const KeyRange seen{shuffle(thread, range.first, 0), shuffle(thread, range.last, 0)};
    PrefillRing ring({kv_of(params, task.slot, task.kv_head), keys, first, last}, shared.stages,
                     shared.barriers);
    copy_commit();
    ring.start(thread);
    // What the caller issued, the queries; the ring's copies are in no group.
    copy_wait<0>();
    async_proxy_fence();
    sync_block(thread);
    BROACH_ROLLED
    for (int i = 0; i <= last - first; ++i) {
      const int tile = kPipeline.order == attention::TileOrder::kUp ? first + i : last - i;
      // To clean, all warpgroups meet in the same place.
      if (clean ||
          (seen.first < (tile + 1) * kConfig.tile_keys && tile * kConfig.tile_keys <= seen.last)) {
        add_tile(thread, params, task, shared, tile, clean, ring, rows, outputs);
      } else {
        skip_tile(thread, ring);
      }
    }
    if (may_hold_unseen(rows, outputs)) shared.unclean[0] = 1;
    ring.end(thread);
  }
};

}  // namespace broach::window_rows
