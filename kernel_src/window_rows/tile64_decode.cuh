#pragma once

// window_rows decode, arith=tile64 (tile64_arith.cuh has the mathematics).
//
// Block: one (row, KV head, run of tiles), kDecodeWarps warps; grid = splits x KV heads x rows.
// Keys are the MMA step's M side (16 a warp), the KV head's query heads its N side, padded to
// blocks of 8 columns. P x V runs transposed: dims are M, heads are N.
// With one split a block folds its row's tiles as it goes and writes the output. With more, each
// tile's (m, l, pv) goes to the workspace and the last block to arrive folds them in tile order, or
// a second kernel does (tile64_fold.cuh). The bits are the same: a tile is computed from a fresh
// state, and the fold is the same chain in the same order.
//
// Keys that the row does not see are never read: their rows of K and V are zeros in shared memory.
// Memory: pieces of 64 keys x kPieceDims dims of K, then of V, through a ring of kStages stages.
// Chips: sm_80 and later, and the host.

#include "tiles/copy.cuh"
#include "tiles/fragments.cuh"
#include "tiles/mma.cuh"
#include "window_rows/pieces.cuh"
#include "window_rows/tile64_arith.cuh"
#include "window_rows/tile64_fold.cuh"
#include "window_rows/tile64_partials.cuh"

namespace broach::window_rows {

constexpr int kDecodeThreads = kDecodeWarps * 32;
constexpr int kHeads = 8 * kHeadBlocks;
constexpr int kQueryStride = kHeadDim + kRowPad;
constexpr int kWeightStride = kTileKeys + kRowPad;
constexpr int kHalves = kP32 ? 2 : 1;

// Scores: four warps cover the tile's keys; a second four take the other head blocks.
constexpr int kScoreBlocks = kHeadBlocks * 4 / kDecodeWarps;
// P x V: 16-dim units of a piece go round the warps.
constexpr int kPieceUnits = kPieceDims / 16;
constexpr int kWarpUnits = (kPieceUnits + kDecodeWarps - 1) / kDecodeWarps;

struct DecodeShared {
  alignas(16) unsigned short pieces[kStages * kPieceElems];
  alignas(16) unsigned short q[kHeads * kQueryStride];            // [head][dim]
  alignas(16) unsigned short p[kHalves][kHeads * kWeightStride];  // [head][key], 16-bit
  alignas(16) float weights[kHeads * kWeightStride];              // [head][key], fp32
  float maxima[4][kHeads];                                        // of 16 keys each
  float sums[kHeads];                                             // l, at the end
  unsigned redo[kHeads];                                          // head is not finite
  unsigned arrived_last[4];
};
static_assert(sizeof(DecodeShared) == kDecodeSharedBytes, "the renderer states the same size");

/// The row a block works on, and its share of the row's tiles.
struct DecodeTask {
  int row, kv_head;
  int slot;
  KeyRange keys;
  int first_tile, last_tile;  // of this block
};

BROACH_DEVICE void load_queries(Thread thread, const BroachWindowRowsDecode& p,
                                const DecodeTask& task, DecodeShared& shared) {
  const int ratio = ratio_of(p);
  const unsigned short* const q = elements(p.attention.q) + task.row * p.attention.q_row_stride +
                                  task.kv_head * ratio * p.attention.q_head_stride;
  constexpr int kVectors = kHeadDim / 8;
  for (int vector = static_cast<int>(thread.index()); vector < kHeads * kVectors;
       vector += kDecodeThreads) {
    const int head = vector / kVectors;
    const int column = vector % kVectors * 8;
    const bool present = head < ratio;
    copy_16_bytes(shared.q + head * kQueryStride + column,
                  q + (present ? head : 0) * p.attention.q_head_stride + column, present);
  }
}

/// Adds one K piece to the dot products of this warp's 16 keys.
BROACH_DEVICE void score_piece(Thread thread, const DecodeShared& shared,
                               const unsigned short* piece, int dims, int ratio,
                               float (&dots)[kScoreBlocks][4]) {
  const int warp = static_cast<int>(thread.warp());
  const unsigned short* const keys = piece + warp % 4 * 16 * kPieceStride;
  BROACH_UNROLL
  for (int step = 0; step < kPieceUnits; step += 2) {
    unsigned a[2][4];
    load_a(thread, a[0], keys + step * 16, kPieceStride);
    if (step + 1 < kPieceUnits) load_a(thread, a[1], keys + step * 16 + 16, kPieceStride);
    BROACH_UNROLL
    for (int i = 0; i < kScoreBlocks; ++i) {
      const int block = warp / 4 * kScoreBlocks + i;
      if (kGeneric && block * 8 >= ratio) continue;
      unsigned b[4];
      load_b_two_steps(thread, b, shared.q + block * 8 * kQueryStride + dims + step * 16,
                       kQueryStride);
      const unsigned first[2] = {b[0], b[1]};
      const unsigned second[2] = {b[2], b[3]};
      mma_m16n8k16<kHalf>(thread, dots[i], a[0], first);
      if (step + 1 < kPieceUnits) mma_m16n8k16<kHalf>(thread, dots[i], a[1], second);
    }
  }
}

/// Turns dot products into scores and leaves each warp's maxima in shared memory.
BROACH_DEVICE void finish_scores(Thread thread, const BroachWindowRowsDecode& p,
                                 const DecodeTask& task, int tile, DecodeShared& shared,
                                 float (&dots)[kScoreBlocks][4]) {
  const int warp = static_cast<int>(thread.warp());
  const int lane = static_cast<int>(thread.lane());
  const int key = tile * kTileKeys + warp % 4 * 16 + lane / 4;
  BROACH_UNROLL
  for (int i = 0; i < kScoreBlocks; ++i) {
    BROACH_UNROLL
    for (int e = 0; e < 4; ++e) {
      const bool seen = task.keys.holds(key + e / 2 * 8);
      dots[i][e] = seen ? score_of(p, dots[i][e]) : -infinity();
    }
    BROACH_UNROLL
    for (int column = 0; column < 2; ++column) {
      float most = larger(dots[i][column], dots[i][column + 2]);
      BROACH_UNROLL
      for (unsigned mask = 4; mask < 32; mask *= 2) {
        most = larger(most, shuffle_xor(thread, most, mask));
      }
      const int head = (warp / 4 * kScoreBlocks + i) * 8 + lane % 4 * 2 + column;
      if (lane < 4) shared.maxima[warp % 4][head] = most;
    }
  }
}

BROACH_DEVICE float tile_maximum(const DecodeShared& shared, int head) {
  return larger(larger(shared.maxima[0][head], shared.maxima[1][head]),
                larger(shared.maxima[2][head], shared.maxima[3][head]));
}

/// Leaves P of this warp's keys in shared memory, fp32 for the sum and 16-bit for P x V.
BROACH_DEVICE void weigh(Thread thread, DecodeShared& shared,
                         const float (&scores)[kScoreBlocks][4]) {
  const int warp = static_cast<int>(thread.warp());
  const int lane = static_cast<int>(thread.lane());
  BROACH_UNROLL
  for (int i = 0; i < kScoreBlocks; ++i) {
    BROACH_UNROLL
    for (int e = 0; e < 4; ++e) {
      const int head = (warp / 4 * kScoreBlocks + i) * 8 + lane % 4 * 2 + e % 2;
      const int at = head * kWeightStride + warp % 4 * 16 + lane / 4 + e / 2 * 8;
      const float weight = weight_of(scores[i][e], tile_maximum(shared, head));
      const Weight halves = split_weight(weight);
      shared.weights[at] = weight;
      shared.p[0][at] = halves.high;
      if constexpr (kP32) shared.p[1][at] = halves.low;
    }
  }
}

/// pv of this warp's 16-dim units of one V piece.
BROACH_DEVICE void value_piece(Thread thread, const DecodeShared& shared,
                               const unsigned short* piece, int ratio,
                               float (&pv)[kWarpUnits][kHeadBlocks][4]) {
  const int warp = static_cast<int>(thread.warp());
  BROACH_UNROLL
  for (int u = 0; u < kWarpUnits; ++u) {
    BROACH_UNROLL
    for (int block = 0; block < kHeadBlocks; ++block) {
      BROACH_UNROLL
      for (int e = 0; e < 4; ++e) pv[u][block][e] = 0.0f;
    }
  }
  BROACH_UNROLL
  for (int keys = 0; keys < kTileKeys; keys += 32) {
    unsigned b[kHalves][kHeadBlocks][4];
    BROACH_UNROLL
    for (int half = 0; half < kHalves; ++half) {
      BROACH_UNROLL
      for (int block = 0; block < kHeadBlocks; ++block) {
        if (kGeneric && block * 8 >= ratio) continue;
        load_b_two_steps(thread, b[half][block], shared.p[half] + block * 8 * kWeightStride + keys,
                         kWeightStride);
      }
    }
    BROACH_UNROLL
    for (int step = 0; step < 2; ++step) {
      BROACH_UNROLL
      for (int u = 0; u < kWarpUnits; ++u) {
        const int unit = warp + u * kDecodeWarps;
        if (kPieceUnits % kDecodeWarps != 0 && unit >= kPieceUnits) continue;
        unsigned a[4];
        load_a_transposed(thread, a, piece + (keys + step * 16) * kPieceStride + unit * 16,
                          kPieceStride);
        BROACH_UNROLL
        for (int block = 0; block < kHeadBlocks; ++block) {
          if (kGeneric && block * 8 >= ratio) continue;
          BROACH_UNROLL
          for (int half = 0; half < kHalves; ++half) {
            const unsigned words[2] = {b[half][block][step * 2], b[half][block][step * 2 + 1]};
            mma_m16n8k16<kHalf>(thread, pv[u][block], a, words);
          }
        }
      }
    }
  }
}

/// l_t of head `block * 8 + lane / 4`, in every lane of that head.
BROACH_DEVICE float tile_sum(Thread thread, const DecodeShared& shared, int block) {
  const int lane = static_cast<int>(thread.lane());
  const float* const row = shared.weights + (block * 8 + lane / 4) * kWeightStride;
  return join_classes(thread, class_sum(row + lane % 4 * 2));
}

/// The fold of a block that folds its tiles as they come.
struct BlockFold {
  float o[kPieces][kWarpUnits][kHeadBlocks][4];
  float maximum[kHeadBlocks][2];  ///< M of heads block * 8 + 2 (lane % 4) and the next.
  float sum;                      ///< l of head warp * 8 + lane / 4.
  float sum_maximum;
  // How the tile at hand joins.
  Fold folds[kHeadBlocks][2];
  Fold sum_fold;

  BROACH_DEVICE void start() {
    sum_maximum = -infinity();
    BROACH_UNROLL
    for (int block = 0; block < kHeadBlocks; ++block) {
      maximum[block][0] = maximum[block][1] = -infinity();
    }
  }

  BROACH_DEVICE void begin_tile(Thread thread, const DecodeShared& shared) {
    const int warp = static_cast<int>(thread.warp());
    const int lane = static_cast<int>(thread.lane());
    BROACH_UNROLL
    for (int block = 0; block < kHeadBlocks; ++block) {
      BROACH_UNROLL
      for (int column = 0; column < 2; ++column) {
        folds[block][column] = fold_factors(
            maximum[block][column], tile_maximum(shared, block * 8 + lane % 4 * 2 + column));
      }
    }
    if (warp < kHeadBlocks) {
      sum_fold = fold_factors(sum_maximum, tile_maximum(shared, warp * 8 + lane / 4));
    }
  }

  /// The outputs are registers, which no run-time index reaches.
  BROACH_DEVICE void join(int piece, const float (&pv)[kWarpUnits][kHeadBlocks][4]) {
    BROACH_UNROLL
    for (int at = 0; at < kPieces; ++at) {
      if (at != piece) continue;
      BROACH_UNROLL
      for (int u = 0; u < kWarpUnits; ++u) {
        BROACH_UNROLL
        for (int block = 0; block < kHeadBlocks; ++block) {
          BROACH_UNROLL
          for (int e = 0; e < 4; ++e) {
            o[at][u][block][e] = folds[block][e % 2].join(o[at][u][block][e], pv[u][block][e]);
          }
        }
      }
    }
  }

  /// Writes the row's outputs; `shared.redo` says after the next barrier which heads are not
  /// finite.
  ///
  /// Through the ring, so that the division is compiled once instead of for all that a lane holds.
  BROACH_DEVICE void finish(Thread thread, const BroachWindowRowsDecode& p, const DecodeTask& task,
                            DecodeShared& shared) {
    const int ratio = ratio_of(p);
    const int warp = static_cast<int>(thread.warp());
    const int lane = static_cast<int>(thread.lane());
    if (warp < kHeadBlocks && lane % 4 == 0) {
      const int head = warp * 8 + lane / 4;
      if (kJoinsSink && head < ratio) {
        join_sink(sum_maximum, p.attention.sinks[task.kv_head * ratio + head], sum);
      }
      shared.sums[head] = sum;
      shared.redo[head] = 0;
    }
    auto* const staged = reinterpret_cast<float*>(shared.pieces);  // [head][dim of the piece]
    static_assert(kHeads * kPieceDims * 4 <= kStages * kPieceElems * 2, "fits in the ring");
    BROACH_ROLLED
    for (int piece = 0; piece < kPieces; ++piece) {
      sync_block(thread);
      BROACH_UNROLL
      for (int at = 0; at < kPieces; ++at) {
        if (at == piece) stage(thread, p, task, o[at], staged);
      }
      sync_block(thread);
      BROACH_ROLLED
      for (int i = static_cast<int>(thread.index()); i < ratio * kPieceDims; i += kDecodeThreads) {
        const int head = i / kPieceDims;
        const unsigned short bits = narrow<kHalf>(div_rn(staged[i], shared.sums[head]));
        elements(p.attention.out)[task.row * p.attention.out_row_stride +
                                  (task.kv_head * ratio + head) * p.attention.out_head_stride +
                                  piece * kPieceDims + i % kPieceDims] = bits;
        if (!is_finite_half<kHalf>(bits)) shared.redo[head] = 1;
      }
    }
  }

 private:
  /// Leaves a piece of o, with what a sink leaves of it, in shared memory.
  BROACH_DEVICE void stage(Thread thread, const BroachWindowRowsDecode& p, const DecodeTask& task,
                           const float (&piece)[kWarpUnits][kHeadBlocks][4], float* staged) const {
    const int ratio = ratio_of(p);
    const int warp = static_cast<int>(thread.warp());
    const int lane = static_cast<int>(thread.lane());
    BROACH_UNROLL
    for (int block = 0; block < kHeadBlocks; ++block) {
      BROACH_UNROLL
      for (int column = 0; column < 2; ++column) {
        const int head = block * 8 + lane % 4 * 2 + column;
        if (head >= ratio) continue;
        float keep = 1.0f;
        if constexpr (kJoinsSink) {
          float unused = 0.0f;
          keep = join_sink(maximum[block][column], p.attention.sinks[task.kv_head * ratio + head],
                           unused);
        }
        BROACH_UNROLL
        for (int u = 0; u < kWarpUnits; ++u) {
          const int unit = warp + u * kDecodeWarps;
          if (kPieceUnits % kDecodeWarps != 0 && unit >= kPieceUnits) continue;
          BROACH_UNROLL
          for (int half = 0; half < 2; ++half) {
            const float value = piece[u][block][column + 2 * half];
            staged[head * kPieceDims + unit * 16 + lane / 4 + half * 8] =
                kJoinsSink ? mul_rn(value, keep) : value;
          }
        }
      }
    }
  }
};

/// Leaves one piece of a tile's pv as a partial.
BROACH_DEVICE void leave_values(Thread thread, const BroachWindowRowsDecode& p,
                                const DecodeTask& task, int index, int piece,
                                const float (&pv)[kWarpUnits][kHeadBlocks][4]) {
  const Partials partials(p, task.row, task.kv_head);
  const int ratio = ratio_of(p);
  const int warp = static_cast<int>(thread.warp());
  const int lane = static_cast<int>(thread.lane());
  BROACH_UNROLL
  for (int u = 0; u < kWarpUnits; ++u) {
    const int unit = warp + u * kDecodeWarps;
    if (kPieceUnits % kDecodeWarps != 0 && unit >= kPieceUnits) continue;
    BROACH_UNROLL
    for (int block = 0; block < kHeadBlocks; ++block) {
      BROACH_UNROLL
      for (int e = 0; e < 4; ++e) {
        const int head = block * 8 + lane % 4 * 2 + e % 2;
        const int dim = piece * kPieceDims + unit * 16 + lane / 4 + e / 2 * 8;
        if (head < ratio) partials.values(index, head)[dim] = pv[u][block][e];
      }
    }
  }
}

/// Computes the block's tiles; folds them and writes the row's output, or leaves each as a partial.
///
/// Both are one loop, so that its steps are compiled once: they are most of what a compiler has to
/// do, and first use waits for it.
BROACH_DEVICE void decode_tiles(Thread thread, const BroachWindowRowsDecode& p,
                                const DecodeTask& task, bool folding, DecodeShared& shared) {
  const int ratio = ratio_of(p);
  const int warp = static_cast<int>(thread.warp());
  const int lane = static_cast<int>(thread.lane());
  PieceFeed<kDecodeThreads> feed(p, task.kv_head, task.slot, task.keys, task.first_tile,
                                 task.last_tile, shared.pieces);
  load_queries(thread, p, task, shared);
  feed.start(thread);

  BlockFold fold{};
  fold.start();
  BROACH_ROLLED
  for (int tile = task.first_tile; tile <= task.last_tile; ++tile) {
    const int index = tile - task.keys.first_tile();
    float scores[kScoreBlocks][4] = {};
    BROACH_ROLLED
    for (int piece = 0; piece < kPieces; ++piece) {
      score_piece(thread, shared, feed.take(thread), piece * kPieceDims, ratio, scores);
    }
    finish_scores(thread, p, task, tile, shared, scores);
    sync_block(thread);
    weigh(thread, shared, scores);
    if (folding) fold.begin_tile(thread, shared);
    BROACH_ROLLED
    for (int piece = 0; piece < kPieces; ++piece) {
      const unsigned short* const values = feed.take(thread);
      if (piece == 0 && warp < kHeadBlocks) {
        const float sum = tile_sum(thread, shared, warp);
        const int head = warp * 8 + lane / 4;
        if (folding) {
          fold.sum = fold.sum_fold.join(fold.sum, sum);
        } else if (lane % 4 == 0 && head < ratio) {
          const Partials partials(p, task.row, task.kv_head);
          partials.maximum(index, head) = tile_maximum(shared, head);
          partials.sum(index, head) = sum;
        }
      }
      float pv[kWarpUnits][kHeadBlocks][4];
      value_piece(thread, shared, values, ratio, pv);
      if (folding) {
        fold.join(piece, pv);
      } else {
        leave_values(thread, p, task, index, piece, pv);
      }
    }
  }
  if (folding) fold.finish(thread, p, task, shared);
}

BROACH_GLOBAL(broach_window_rows_tile64_decode, kDecodeThreads, BroachWindowRowsTile64Decode,
              NoShared) {
  const BroachWindowRowsDecode& p = params.decode;
  DecodeShared& block_shared = *static_cast<DecodeShared*>(dynamic_shared(thread));
  DecodeTask task;
  task.row = static_cast<int>(thread.block_z());
  task.kv_head = static_cast<int>(thread.block_y());
  task.slot = p.slots[task.row];
  const int position = p.positions[task.row];
  task.keys = {first_key(p, position), position};
  check_row(thread, p, task.slot, task.keys.first, task.keys.last);
  const int tiles = task.keys.last_tile() - task.keys.first_tile() + 1;
  task.first_tile =
      task.keys.first_tile() + static_cast<int>(thread.block_x()) * params.tiles_a_split;
  if (task.first_tile > task.keys.last_tile()) return;
  const int end = task.first_tile + params.tiles_a_split - 1;
  task.last_tile = end < task.keys.last_tile() ? end : task.keys.last_tile();

  const bool folding = params.schedule == BROACH_TILE64_FOLDING;
  decode_tiles(thread, p, task, folding, block_shared);
  const int ratio = ratio_of(p);
  if (!folding) {
    if (params.schedule == BROACH_TILE64_LEAVING) return;
    const int blocks = (tiles + params.tiles_a_split - 1) / params.tiles_a_split;
    const int pair = task.row * p.cache.kv_heads + task.kv_head;
    if (!arrives_last(thread, p, pair, params.launch, blocks, block_shared.arrived_last)) return;
    static_assert(sizeof(FoldShared) <= sizeof(block_shared.pieces), "the pieces' place is enough");
    auto& fold_shared = *reinterpret_cast<FoldShared*>(block_shared.pieces);
    constexpr int kAtOnce = kRatio < kFoldValues / kHeadDim ? kRatio : kFoldValues / kHeadDim;
    BROACH_ROLLED
    for (int head = 0; head < ratio; head += kAtOnce) {
      fold_heads<kAtOnce, kDecodeThreads, kDecodeThreads, kFoldAheadInDecode>(
          thread, p, task.row, task.kv_head, head, task.keys, fold_shared,
          block_shared.redo + head);
      sync_block(thread);
    }
  }
  sync_block(thread);
  redo_heads<kDecodeThreads>(thread, p, task.row, task.kv_head, 0, ratio, task.slot, task.keys,
                             block_shared.redo,
                             reinterpret_cast<unsigned char*>(block_shared.pieces));
}

}  // namespace broach::window_rows
