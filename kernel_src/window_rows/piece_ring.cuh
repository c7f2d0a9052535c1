#pragma once

// The pieces of a block whose warpgroups run apart: one may be ahead of another by as many pieces
// as the ring has stages to spare, so that one multiplies while another weighs.

#include "common/warp.cuh"
#include "tiles/barrier.cuh"
#include "tiles/warpgroup.cuh"
#include "window_rows/pieces.cuh"

namespace broach::window_rows {

/// Halves of tiles, K or V, that are asked for before they are used: a tile. The stages left hold
/// the piece in use and what a warpgroup may be behind another by.
constexpr int kHalvesAhead = 2;
constexpr int kPiecesAhead = kHalvesAhead * kPieces;
static_assert(kStages >= kPiecesAhead + 2, "a piece in use, one to be behind by, and those ahead");

struct RingBarriers {
  Barrier arrived[kStages];  // every thread's copies of the stage's piece
  Barrier freed[kStages];    // every warp's use of it
};

constexpr int kWarpgroupWarps = 4;
constexpr int kWarpgroupThreads = kWarpgroupWarps * 32;

/// Feeds one block of kThreads threads. Warpgroups copy the halves of tiles in turns, each a half.
///
/// Owns:    nothing; parameters, ring and barriers outlive it.
template <int kThreads, TileOrder kOrder>
struct PieceRing {
  PieceSource<kWarpgroupThreads, kOrder> source;
  unsigned short* ring;  // [kStages][kPieceElems], panels
  RingBarriers& barriers;
  int next = 0;        // piece to be taken
  int stage = 0;       // its stage
  unsigned round = 0;  // how often, modulo 2, the ring went round before it

  BROACH_DEVICE PieceRing(const PieceSource<kWarpgroupThreads, kOrder>& pieces,
                          unsigned short* stages, RingBarriers& ring_barriers)
      : source(pieces), ring(stages), barriers(ring_barriers) {}

  /// Starts the barriers and asks for the first pieces. Every thread takes part; the barriers are
  /// seen after a block barrier that follows.
  BROACH_DEVICE void start(Thread thread) {
    if (thread.index() < kStages) {
      barrier_start(barriers.arrived[thread.index()], kWarpgroupThreads);
      barrier_start(barriers.freed[thread.index()], kThreads / kWarpLanes);
    }
    sync_block(thread);
    BROACH_ROLLED
    for (int n = 0; n < kPiecesAhead && n < source.count; ++n) {
      if (is_mine(thread, n)) copy(thread, n, n);
    }
  }

  /// Ends the barriers, once every piece has been taken and released. Every thread takes part.
  BROACH_DEVICE void end(Thread thread) {
    sync_block(thread);
    if (thread.index() < kStages) {
      barrier_end(barriers.arrived[thread.index()]);
      barrier_end(barriers.freed[thread.index()]);
    }
    sync_block(thread);
  }

  /// Whether this thread's warpgroup copies the half that piece `n` belongs to.
  BROACH_DEVICE bool is_mine(Thread thread, int n) const {
    constexpr int kWarpgroups = kThreads / kWarpgroupThreads;
    return n / kPieces % kWarpgroups == static_cast<int>(thread.warp()) / kWarpgroupWarps;
  }

  BROACH_DEVICE void copy(Thread thread, int n, int to_stage) {
    source.copy(thread, n, ring + to_stage * kPieceElems);
    barrier_arrive_after_copies(barriers.arrived[to_stage]);
  }

  /// Asks for the pieces of the half that comes kHalvesAhead after the one whose pieces were all
  /// taken last, each once its stage is free. To be called once a half.
  BROACH_DEVICE void ask_half(Thread thread) {
    const int first = next + kPiecesAhead - kPieces;
    if (!is_mine(thread, first)) return;
    BROACH_ROLLED
    for (int i = 0; i < kPieces && first + i < source.count; ++i) {
      const int ahead = stage + kPiecesAhead - kPieces + i;
      const bool is_round_next = ahead >= kStages;
      const int to_stage = is_round_next ? ahead - kStages : ahead;
      // The round before it; in the first nobody has used a stage yet.
      const unsigned before = (round + (is_round_next ? 1u : 0u) + 1u) % 2u;
      if (first + i >= kStages) barrier_wait(barriers.freed[to_stage], before);
      copy(thread, first + i, to_stage);
    }
  }

  /// The next piece in order, once it has arrived.
  BROACH_DEVICE unsigned short* take() {
    barrier_wait(barriers.arrived[stage], round);
    async_proxy_fence();
    unsigned short* const piece = ring + stage * kPieceElems;
    ++next;
    if (++stage == kStages) {
      stage = 0;
      round ^= 1u;
    }
    return piece;
  }

  /// Gives back the piece that was taken last, or `earlier` before it: no step of this warp reads
  /// it any more.
  BROACH_DEVICE void release(Thread thread, int earlier = 0) {
    sync_warp(thread);
    const int of = stage - 1 - earlier;
    if (thread.lane() == 0) barrier_arrive(barriers.freed[of < 0 ? of + kStages : of]);
  }
};

}  // namespace broach::window_rows
