#pragma once

// A prefill block's work, whichever arithmetic made of MMA steps it follows and whoever
// multiplies.
//
// Block: kPrefillRows consecutive rows of one sequence x one query head, kPrefillWarps warps; grid
// = row blocks x query heads. A warp has a band of 16 rows (prefill_band.cuh). Rows fold as they
// go: a row that sees no key of a tile is left alone, bit for bit.
//
// The including source has included an arithmetic, and prefill_warp.cuh or prefill_warpgroup.cuh:
// BlockShared and fold_tiles are theirs.

#include "common/load.cuh"
#include "window_rows/float64_rerun.cuh"
#include "window_rows/prefill_band.cuh"
#include "window_rows/prefill_rows.cuh"

namespace broach::window_rows {

// A chunk of a warp's outputs on its way out, in fp32: 16 rows, each with l and what a sink leaves
// of o behind it.
constexpr int kOutStride = kChunkColumns + 4;
static_assert(kPrefillWarps * 16 * kOutStride * 4 <= kStages * kPieceElems * 2, "fits in the ring");

/// Writes a band's outputs, and marks the rows that have one which is not finite.
///
/// Through the ring, which the block is done with, so that a lane has 8 neighbours of one row:
/// whole vectors to write, and the division is compiled for 8 elements instead of for all that it
/// holds.
BROACH_DEVICE void write_band(Thread thread, const BroachWindowRowsDecode& p,
                              const PrefillTask& task, PrefillShared& shared, BandRows& rows,
                              const BandOutputs& outputs) {
  const int lane = static_cast<int>(thread.lane());
  const int band = band_of(thread);
  const int column_part = column_part_of(thread);
  float* const staged =
      reinterpret_cast<float*>(shared.pieces) + static_cast<int>(thread.warp()) * 16 * kOutStride;
  BROACH_UNROLL
  for (int r = 0; r < 2; ++r) {
    float keep = 1.0f;
    if constexpr (kJoinsSink)
      keep = join_sink(rows.maximum[r], p.attention.sinks[task.head], rows.sum[r]);
    float* const behind = staged + (lane / 4 + 8 * r) * kOutStride + kChunkColumns;
    if (lane % 4 == 0) {
      behind[0] = rows.sum[r];
      behind[1] = keep;
    }
  }
  unsigned short* const out = elements(p.attention.out) +
                              task.first_row * p.attention.out_row_stride +
                              task.head * p.attention.out_head_stride + column_part * kPieceColumns;
  BROACH_ROLLED
  for (int chunk = 0; chunk < kPieces * kChunks; ++chunk) {
    BROACH_UNROLL
    for (int at = 0; at < kPieces * kChunks; ++at) {
      if (at != chunk) continue;
      BROACH_UNROLL
      for (int block = 0; block < kChunkBlocks; ++block) {
        BROACH_UNROLL
        for (int e = 0; e < 4; ++e) {
          staged[(lane / 4 + e / 2 * 8) * kOutStride + block * 8 + lane % 4 * 2 + e % 2] =
              outputs.o[at / kChunks][at % kChunks][block][e];
        }
      }
    }
    sync_warp(thread);
    constexpr int kVectors = kChunkColumns / 8;
    BROACH_ROLLED
    for (int vector = lane; vector < 16 * kVectors; vector += 32) {
      const int row = band * 16 + vector / kVectors;
      if (row >= task.rows) continue;
      const float* const from = staged + vector / kVectors * kOutStride;
      const float l = from[kChunkColumns];
      const float keep = from[kChunkColumns + 1];
      const int column = vector % kVectors * 8;
      Halves8 halves;
      bool finite = true;
      BROACH_UNROLL
      for (int i = 0; i < 8; i += 2) {
        const unsigned pair = narrow_pair<kHalf>(finished(from[column + i], l, keep),
                                                 finished(from[column + i + 1], l, keep));
        finite = finite && is_finite_half<kHalf>(static_cast<unsigned short>(pair & 0xffffu)) &&
                 is_finite_half<kHalf>(static_cast<unsigned short>(pair >> 16));
        halves.words[i / 2] = pair;
      }
      share8(out + row * p.attention.out_row_stride + chunk / kChunks * kPieceDims +
                 chunk % kChunks * kChunkColumns + column,
             halves);
      if (!finite) shared.redo[row] = 1;
    }
    sync_warp(thread);
  }
}

/// Computes the marked rows again in float64. Every thread of the block takes part.
BROACH_DEVICE void redo_rows(Thread thread, const BroachWindowRowsDecode& p,
                             const PrefillTask& task, PrefillShared& shared) {
  bool is_marked = false;
  BROACH_ROLLED
  for (int row = static_cast<int>(thread.lane()); row < task.rows; row += 32) {
    is_marked = is_marked || shared.redo[row] != 0;
  }
  if (ballot(thread, is_marked) == 0) return;
  auto& scratch = *reinterpret_cast<RerunShared*>(shared.pieces);
  BROACH_ROLLED
  for (int row = 0; row < task.rows; ++row) {
    if (shared.redo[row] == 0 && kControl != Control::kWholeBlockRerun) continue;
    const int at = task.first_row + row;
    rerun_head<kPrefillThreads>(thread, p,
                                elements(p.attention.q) + at * p.attention.q_row_stride +
                                    task.head * p.attention.q_head_stride,
                                elements(p.attention.out) + at * p.attention.out_row_stride +
                                    task.head * p.attention.out_head_stride,
                                task.kv_head, task.head, task.slot, keys_of(p, task, shared, row),
                                scratch);
  }
}

BROACH_DEVICE void prefill_block(Thread thread, const BroachWindowRowsPrefill& params) {
  const BroachWindowRowsDecode& p = params.common;
  BlockShared& shared = block_shared(thread);
  PrefillTask task;
  if (!find_task(thread, params, task)) return;
  load_last_keys(thread, params, task, shared);
  sync_block(thread);
  const KeyRange keys = keys_of_rows(thread, p, task, shared, 0, task.rows);

  load_prefill_queries(thread, p, task, shared);
  BandRows rows;
  BandOutputs outputs;
  // Once, and once more where values have to be cleaned.
  BROACH_ROLLED
  for (bool clean = false;; clean = true) {
    fold_tiles(thread, p, task, keys, clean, shared, rows, outputs);
    sync_block(thread);
    if (clean || shared.unclean[0] == 0) break;
  }
  write_band(thread, p, task, shared, rows, outputs);
  sync_block(thread);
  redo_rows(thread, p, task, shared);
}

}  // namespace broach::window_rows
