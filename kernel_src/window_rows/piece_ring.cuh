#pragma once

// The pieces of a block whose warpgroups run apart: one may be ahead of another by as many pieces
// as the ring has stages to spare, so that one multiplies while another weighs.

#include "common/warp.cuh"
#include "tiles/barrier.cuh"
#include "tiles/warpgroup.cuh"
#include "window_rows/pieces.cuh"

namespace broach::window_rows {

/// How many halves of tiles, K or V, are asked for before they are used; at least two pieces are
/// left for a warpgroup to be behind another.
constexpr int kHalvesAhead = kStages >= 3 * kPieces + 2 ? 2 : 1;
static_assert(kStages >= (kHalvesAhead + 1) * kPieces + 2, "a half in use, and those ahead");

struct RingBarriers {
  Barrier arrived[kStages];  // every thread's copies of the stage's piece
  Barrier freed[kStages];    // every warp's use of it
};

/// A stage of the ring and how often, modulo 2, the ring has gone round before it.
struct RingPlace {
  int stage = 0;
  unsigned round = 0;

  BROACH_DEVICE void advance() {
    if (++stage == kStages) {
      stage = 0;
      round ^= 1u;
    }
  }
};

/// Feeds one block of kThreads threads, each of which copies its share of every piece.
///
/// Owns:    nothing; parameters, ring and barriers outlive it.
template <int kThreads, TileOrder kOrder>
struct PieceRing {
  PieceSource<kThreads, kOrder> source;
  unsigned short* ring;  // [kStages][kPieceElems], panels
  RingBarriers& barriers;
  int next = 0;  // to be asked for
  RingPlace asked, taken, released;

  BROACH_DEVICE PieceRing(const PieceSource<kThreads, kOrder>& pieces, unsigned short* stages,
                          RingBarriers& ring_barriers)
      : source(pieces), ring(stages), barriers(ring_barriers) {}

  /// Starts the barriers and asks for the first pieces; with them go copies that the caller made
  /// before. Every thread takes part.
  BROACH_DEVICE void start(Thread thread) {
    if (thread.index() < kStages) {
      barrier_start(barriers.arrived[thread.index()], kThreads);
      barrier_start(barriers.freed[thread.index()], kThreads / kWarpLanes);
    }
    sync_block(thread);
    BROACH_ROLLED
    for (int i = 0; i < kHalvesAhead; ++i) ask_half(thread);
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

  /// Asks for the pieces of the next half of a tile, each once its stage is free. To be called once
  /// for each half that is used, before its pieces are taken.
  BROACH_DEVICE void ask_half(Thread thread) {
    BROACH_ROLLED
    for (int i = 0; i < kPieces && next < source.count; ++i) {
      // In the first round nobody has used a stage yet.
      if (next >= kStages) barrier_wait(barriers.freed[asked.stage], asked.round ^ 1u);
      source.copy(thread, next, ring + asked.stage * kPieceElems);
      barrier_arrive_after_copies(barriers.arrived[asked.stage]);
      asked.advance();
      ++next;
    }
  }

  /// The next piece in order, once it has arrived.
  BROACH_DEVICE unsigned short* take() {
    barrier_wait(barriers.arrived[taken.stage], taken.round);
    async_proxy_fence();
    unsigned short* const piece = ring + taken.stage * kPieceElems;
    taken.advance();
    return piece;
  }

  /// Gives back the piece taken longest ago: no step of this warp reads it any more.
  BROACH_DEVICE void release(Thread thread) {
    sync_warp(thread);
    if (thread.lane() == 0) barrier_arrive(barriers.freed[released.stage]);
    released.advance();
  }
};

}  // namespace broach::window_rows
