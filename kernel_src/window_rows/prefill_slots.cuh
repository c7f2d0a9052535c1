#pragma once

// Shared memory and constants of a prefill block of a producer warp and consumer warpgroups: the
// block's queries in swizzled tiles [64 rows][64 dims], then a ring of slots {K of tile t + 1, V of
// tile t}. Chips: sm_90a.

#include "tiles/tensor_copy.cuh"
#include "window_rows/prefill_band.cuh"

namespace broach::window_rows {

static_assert(kConfig.tile_keys == 64 && kSliceDims == kConfig.head_dim,
              "a tile is a swizzled tile high, a chain whole");
static_assert(kStagesOfK == 1 && kColumnSplit == 1 && kConfig.swizzled, "a slot holds whole tiles");

constexpr int kTileKeys = kConfig.tile_keys;
constexpr int kSlots = kConfig.stages / 2;
constexpr int kTileElems = kStageElems;
constexpr int kDimTiles = kConfig.head_dim / kSwizzleColumns;
constexpr int kConsumers = kConfig.warps / 4;
constexpr int kPipelineThreads = kConfig.threads() + kProducerThreads;
static_assert(kConfig.stages == 2 * kSlots && kSlots >= 2, "copies overlap WGMMAs");

struct PipelineShared : PrefillShared {
  KeyRange keys[kConfig.rows];  // that each row sees; registers are short
  PrefillTask task;
  Barrier full[kSlots];   // the slot's K and V have arrived
  Barrier empty[kSlots];  // every consumer warp has read them
  Barrier q_full;
};
static_assert(sizeof(PipelineShared) == kConfig.shared_bytes, "the renderer states the same size");

#if defined(BROACH_CUDA)
extern __shared__ __attribute__((aligned(1024))) unsigned char broach_swizzled_shared[];

BROACH_DEVICE PipelineShared& pipeline_shared() {
  return *reinterpret_cast<PipelineShared*>(broach_swizzled_shared);
}

constexpr int kSwizzledElems = 64 * kSwizzleColumns;
constexpr unsigned kSwizzledUnits = kSwizzledElems * 2 / 16;  // of a descriptor
constexpr unsigned kTileUnits = kTileElems * 2 / 16;

/// Waits for all consumer warpgroups of the block.
BROACH_DEVICE void sync_consumers() {
  asm volatile("bar.sync 1, %0;" : : "n"(kConfig.threads()) : "memory");
}

/// Where a thread stands in the ring: slots are filled and emptied in order, round after round.
struct SlotCursor {
  int slot = 0;
  unsigned round = 0;  // modulo 2

  BROACH_DEVICE void advance() {
    if (++slot == kSlots) {
      slot = 0;
      round ^= 1u;
    }
  }
};
#endif

}  // namespace broach::window_rows
