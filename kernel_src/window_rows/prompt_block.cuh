#pragma once

// A prompt block's work, whichever arithmetic made of matrix steps it follows.
//
// Block: 64 consecutive rows of one sequence x one query head, kPromptWarps warps; grid = row
// blocks x query heads. A warp has a band of 16 rows (prompt_band.cuh). Rows fold as they go: a row
// that sees no key of a tile is left alone, bit for bit.
// Memory: queries [64][D], then the pieces' ring.

#include "window_rows/float64_rerun.cuh"
#include "window_rows/pieces.cuh"
#include "window_rows/prompt_band.cuh"
#include "window_rows/prompt_rows.cuh"

namespace broach::window_rows {

constexpr TileOrder kPromptOrder =
    kControl == Control::kFoldReversed ? TileOrder::kDown : TileOrder::kUp;

/// A lane's share of a band's running sums: o of its two rows, by piece, chunk and column block.
struct BandOutputs {
  float o[kPieces][kChunks][kChunkBlocks][4];
};

/// Every key that a row of the block sees, and those between them.
BROACH_DEVICE KeyRange keys_of_block(const BroachWindowRowsDecode& p, const PromptTask& task,
                                     const PromptShared& shared) {
  KeyRange keys{first_key(p, task.position), 0};
  for (int row = 0; row < task.rows; ++row) {
    if (shared.last[row] > keys.last) keys.last = shared.last[row];
  }
  return keys;
}

/// Folds one tile into a band's rows, taking the tile's pieces from the feed.
BROACH_DEVICE void fold_tile(Thread thread, const BroachWindowRowsDecode& p, const PromptTask& task,
                             const PromptShared& shared, int tile,
                             PieceFeed<kPromptThreads, kPromptOrder>& feed, BandRows& rows,
                             BandOutputs& outputs) {
  const int band = static_cast<int>(thread.warp()) % 4;
  const int column_part = static_cast<int>(thread.warp()) / 4;
  const unsigned short* const queries = shared.q + band * 16 * kPromptQueryStride;
  BandScores scores = {};
  BROACH_UNROLL
  for (int piece = 0; piece < kPieces; ++piece) {
    score_band(thread, queries, feed.take(thread), piece * kPieceDims, scores);
  }
  BandWeights weights;
  const bool partly = weigh_band(thread, p, task, shared, tile, rows, scores.dots(), weights);
  const bool band_partly = any(thread, partly);
  BROACH_UNROLL
  for (int piece = 0; piece < kPieces; ++piece) {
    const unsigned short* const values = feed.take(thread) + column_part * kPieceColumns;
    BROACH_UNROLL
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      float pv[kChunkBlocks][4];
      tile_values(thread, p, task, shared, band, weights, values + chunk * kChunkColumns,
                  tile * kTileKeys, band_partly, pv);
      BROACH_UNROLL
      for (int block = 0; block < kChunkBlocks; ++block) {
        BROACH_UNROLL
        for (int e = 0; e < 4; ++e) {
          float& o = outputs.o[piece][chunk][block][e];
          if (weights.sees[e / 2]) o = weights.folds[e / 2].join(o, pv[block][e]);
        }
      }
    }
  }
}

/// Writes a band's outputs, and marks the rows that have one which is not finite.
BROACH_DEVICE void write_band(Thread thread, const BroachWindowRowsDecode& p,
                              const PromptTask& task, PromptShared& shared, BandRows& rows,
                              const BandOutputs& outputs) {
  const int lane = static_cast<int>(thread.lane());
  const int band = static_cast<int>(thread.warp()) % 4;
  const int column_part = static_cast<int>(thread.warp()) / 4;
  BROACH_UNROLL
  for (int r = 0; r < 2; ++r) {
    const int row = band * 16 + lane / 4 + 8 * r;
    if (row >= task.rows) continue;
    float keep = 1.0f;
    if constexpr (kJoinsSink) keep = join_sink(rows.maximum[r], p.sinks[task.head], rows.sum[r]);
    unsigned short* const out = p.out + (task.first_row + row) * p.out_row_stride +
                                task.head * p.out_head_stride + column_part * kPieceColumns;
    BROACH_UNROLL
    for (int piece = 0; piece < kPieces; ++piece) {
      BROACH_UNROLL
      for (int chunk = 0; chunk < kChunks; ++chunk) {
        BROACH_UNROLL
        for (int block = 0; block < kChunkBlocks; ++block) {
          unsigned short bits[2];
          BROACH_UNROLL
          for (int i = 0; i < 2; ++i) {
            const float o = outputs.o[piece][chunk][block][2 * r + i];
            bits[i] = narrow<kHalf>(finished(o, rows.sum[r], keep));
            if (!is_finite_half<kHalf>(bits[i])) shared.redo[row] = 1;
          }
          const int column = piece * kPieceDims + chunk * kChunkColumns + block * 8 + lane % 4 * 2;
          *reinterpret_cast<unsigned*>(out + column) = pack(bits[0], bits[1]);
        }
      }
    }
  }
}

/// Computes the marked rows again in float64. Every thread of the block takes part.
BROACH_DEVICE void redo_rows(Thread thread, const BroachWindowRowsDecode& p, const PromptTask& task,
                             PromptShared& shared) {
  bool any_row = false;
  for (int row = 0; row < task.rows; ++row) any_row = any_row || shared.redo[row] != 0;
  if (!any_row) return;
  auto& scratch = *reinterpret_cast<RerunShared*>(shared.pieces);
  for (int row = 0; row < task.rows; ++row) {
    if (shared.redo[row] == 0 && kControl != Control::kWholeBlockRerun) continue;
    const int at = task.first_row + row;
    rerun_head<kPromptThreads>(thread, p, p.q + at * p.q_row_stride + task.head * p.q_head_stride,
                               p.out + at * p.out_row_stride + task.head * p.out_head_stride,
                               task.kv_head, task.head, task.slot, keys_of(p, task, shared, row),
                               scratch);
  }
}

BROACH_DEVICE void prompt_block(Thread thread, const BroachWindowRowsPrompt& params) {
  const BroachWindowRowsDecode& p = params.common;
  PromptShared& shared = *static_cast<PromptShared*>(dynamic_shared(thread));
  PromptTask task;
  if (!find_task(thread, params, task)) return;
  load_last_keys(thread, params, task, shared);
  sync_block(thread);
  const KeyRange keys = keys_of_block(p, task, shared);

  BandRows rows;
  BROACH_UNROLL
  for (int r = 0; r < 2; ++r) {
    rows.maximum[r] = -infinity();
    rows.sum[r] = 0.0f;
  }
  const int first = keys.first_tile();
  const int last = keys.last_tile();
  PieceFeed<kPromptThreads, kPromptOrder> feed(p, task.kv_head, task.slot, keys, first, last,
                                               shared.pieces);
  load_prompt_queries(thread, p, task, shared);
  feed.start(thread);

  BandOutputs outputs = {};
  for (int tile = first; tile <= last; ++tile) {
    const int turn = kPromptOrder == TileOrder::kUp ? tile : first + last - tile;
    fold_tile(thread, p, task, shared, turn, feed, rows, outputs);
  }
  write_band(thread, p, task, shared, rows, outputs);
  sync_block(thread);
  redo_rows(thread, p, task, shared);
}

}  // namespace broach::window_rows
