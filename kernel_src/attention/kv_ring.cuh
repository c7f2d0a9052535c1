#pragma once

// The KV pipeline of a block whose warpgroups run apart: one may be ahead of another by as many
// stages as the ring has to spare, so that one multiplies while another is at its softmax.

#include "attention/kv_pipeline.cuh"
#include "common/warp.cuh"
#include "tiles/barrier.cuh"
#include "tiles/wgmma.cuh"

namespace broach::attention {

constexpr int kWarpgroupWarps = 4;
constexpr int kWarpgroupThreads = kWarpgroupWarps * 32;

template <int kStages>
struct RingBarriers {
  Barrier full[kStages];   // every thread's copies of the stage have arrived
  Barrier empty[kStages];  // every warp has used it
};

/// Feeds one block of kThreads threads. Warpgroups copy the halves of tiles, K or V, in turn.
///
/// Owns:    nothing; parameters, stages and barriers outlive it.
template <PipelineConfig kConfig, int kThreads>
struct KvRing {
  static constexpr int kStages = kConfig.stages;
  static constexpr int kStagesOfK = kConfig.stages_of_k();
  /// Stages that are prefetched: a tile's. The others hold the stage in use and what a warpgroup
  /// may be behind another by.
  static constexpr int kPrefetch = 2 * kStagesOfK;
  static_assert(kStages >= kPrefetch + 2,
                "a stage in use, one to be behind by, and the prefetched");

  using Producer = KvProducer<kConfig, kWarpgroupThreads>;

  Producer producer;
  unsigned short* stages;  // [kStages][stage_elems]
  RingBarriers<kStages>& barriers;
  int next = 0;        // to be waited for
  int stage = 0;       // where it goes
  unsigned phase = 0;  // how often, modulo 2, the ring went round before it

  BROACH_DEVICE KvRing(const Producer& of_tiles, unsigned short* memory,
                       RingBarriers<kStages>& ring_barriers)
      : producer(of_tiles), stages(memory), barriers(ring_barriers) {}

  /// Initialises the barriers and issues the first stages. Every thread takes part; the barriers
  /// are seen after a block barrier that follows.
  BROACH_DEVICE void start(Thread thread) {
    if (thread.index() < kStages) {
      barrier_init(barriers.full[thread.index()], kWarpgroupThreads);
      barrier_init(barriers.empty[thread.index()], kThreads / kWarpLanes);
    }
    sync_block(thread);
    BROACH_ROLLED
    for (int n = 0; n < kPrefetch && n < producer.count; ++n) {
      if (is_mine(thread, n)) copy(thread, n, n);
    }
  }

  /// Ends the barriers, once every stage has been waited for and released. Every thread takes part.
  BROACH_DEVICE void end(Thread thread) {
    sync_block(thread);
    if (thread.index() < kStages) {
      barrier_invalidate(barriers.full[thread.index()]);
      barrier_invalidate(barriers.empty[thread.index()]);
    }
    sync_block(thread);
  }

  /// Whether this thread's warpgroup copies the half of a tile that stage `n` belongs to.
  BROACH_DEVICE bool is_mine(Thread thread, int n) const {
    constexpr int kWarpgroups = kThreads / kWarpgroupThreads;
    return n / kStagesOfK % kWarpgroups == static_cast<int>(thread.warp()) / kWarpgroupWarps;
  }

  BROACH_DEVICE void copy(Thread thread, int n, int to_stage) {
    producer.copy(thread, n, stages + to_stage * kConfig.stage_elems());
    barrier_arrive_after_copies(barriers.full[to_stage]);
  }

  /// Issues the half of a tile that comes two halves after the one waited for last, each stage once
  /// it is empty. To be called once a half.
  BROACH_DEVICE void issue_half(Thread thread) {
    const int first = next + kPrefetch - kStagesOfK;
    if (!is_mine(thread, first)) return;
    BROACH_ROLLED
    for (int i = 0; i < kStagesOfK && first + i < producer.count; ++i) {
      const int ahead = stage + kPrefetch - kStagesOfK + i;
      const bool is_round_next = ahead >= kStages;
      const int to_stage = is_round_next ? ahead - kStages : ahead;
      // The round before it; in the first nobody has used a stage yet.
      const unsigned before = (phase + (is_round_next ? 1u : 0u) + 1u) % 2u;
      if (first + i >= kStages) barrier_wait(barriers.empty[to_stage], before);
      copy(thread, first + i, to_stage);
    }
  }

  /// Waits for the next stage in order.
  BROACH_DEVICE unsigned short* wait() {
    barrier_wait(barriers.full[stage], phase);
    async_proxy_fence();
    unsigned short* const data = stages + stage * kConfig.stage_elems();
    ++next;
    if (++stage == kStages) {
      stage = 0;
      phase ^= 1u;
    }
    return data;
  }

  /// Releases the stage waited for last, or `earlier` before it: no MMA of this warp reads it any
  /// more.
  BROACH_DEVICE void release(Thread thread, int earlier = 0) {
    sync_warp(thread);
    const int of = stage - 1 - earlier;
    if (thread.lane() == 0) barrier_arrive(barriers.empty[of < 0 ? of + kStages : of]);
  }
};

}  // namespace broach::attention
