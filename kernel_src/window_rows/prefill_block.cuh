#pragma once

// A prefill block, whichever arithmetic made of MMA steps it follows and whichever instruction
// multiplies.
//
// Block: `rows` consecutive rows of one sequence x one query head; grid = row blocks x query heads.
// A warp has a band of 16 rows (prefill_band.cuh) and keeps its online softmax: a row that sees no
// key of a tile is left alone, bit for bit.

#include "common/load.cuh"
#include "window_rows/prefill_band.cuh"
#include "window_rows/prefill_rows.cuh"

namespace broach::window_rows {

// A chunk of a warp's outputs on its way out, in fp32: 16 rows, each with l and what a sink leaves
// of o behind it.
constexpr int kOutStride = kChunkColumns + 4;
static_assert(kConfig.warps * 16 * kOutStride * 4 <= kConfig.stages * kStageElems * 2,
              "fits in the stages");

/// Two neighbours of an output row in 16 bits, the first in the low half.
BROACH_DEVICE unsigned rounded_output_pair(float first, float second) {
  if constexpr (kConfig.has(Control::kOutputTowardZero)) {
    return rounded_output(first) | static_cast<unsigned>(rounded_output(second)) << 16;
  } else {
    return narrow_pair<kConfig.dtype>(first, second);
  }
}

/// The epilogue: writes a band's outputs, and marks the rows that have one which is not finite.
///
/// Through the KV stages, which the block is done with, so that a lane has 8 neighbours of one row:
/// whole vectors to write, and the division is compiled for 8 elements instead of for all that it
/// holds.
BROACH_DEVICE void write_band(Thread thread, const Params& params, const PrefillTask& task,
                              PrefillShared& shared, BandRows& rows, const BandOutputs& outputs) {
  const broach_attention_rows& tensors = params.attention;
  const int lane = static_cast<int>(thread.lane());
  const int band = band_of(thread);
  const int column_part = column_part_of(thread);
  float* const staged =
      reinterpret_cast<float*>(shared.stages) + static_cast<int>(thread.warp()) * 16 * kOutStride;
  BROACH_UNROLL
  for (int r = 0; r < 2; ++r) {
    float sink_rescale = 1.0f;
    if constexpr (kAddsSink) {
      sink_rescale =
          attention::add_sink<kSoftmax>(rows.maximum[r], tensors.sinks[task.head], rows.sum[r]);
    }
    float* const behind = staged + (lane / 4 + 8 * r) * kOutStride + kChunkColumns;
    if (lane % 4 == 0) {
      behind[0] = rows.sum[r];
      behind[1] = sink_rescale;
    }
  }
  unsigned short* const out = elements(tensors.out) + task.first_row * tensors.out_row_stride +
                              task.head * tensors.out_head_stride + column_part * kStageColumns;
  BROACH_ROLLED
  for (int chunk = 0; chunk < kStagesOfK * kChunks; ++chunk) {
    BROACH_UNROLL
    for (int at = 0; at < kStagesOfK * kChunks; ++at) {
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
      const float sink_rescale = from[kChunkColumns + 1];
      const int column = vector % kVectors * 8;
      Halves8 halves;
      bool finite = true;
      BROACH_UNROLL
      for (int i = 0; i < 8; i += 2) {
        const unsigned pair = rounded_output_pair(
            attention::normalized<kSoftmax>(from[column + i], l, sink_rescale),
            attention::normalized<kSoftmax>(from[column + i + 1], l, sink_rescale));
        finite = finite &&
                 is_finite_half<kConfig.dtype>(static_cast<unsigned short>(pair & 0xffffu)) &&
                 is_finite_half<kConfig.dtype>(static_cast<unsigned short>(pair >> 16));
        halves.words[i / 2] = pair;
      }
      share8(out + row * tensors.out_row_stride + chunk / kChunks * kConfig.stage_dims +
                 chunk % kChunks * kChunkColumns + column,
             halves);
      if (!finite) shared.redo[row] = 1;
    }
    sync_warp(thread);
  }
}

/// Computes the marked rows again in float64. Every thread of the block takes part.
BROACH_DEVICE void rerun_rows(Thread thread, const Params& params, const PrefillTask& task,
                              PrefillShared& shared) {
  if constexpr (kConfig.has(Control::kRerunDropped)) return;
  bool is_marked = false;
  BROACH_ROLLED
  for (int row = static_cast<int>(thread.lane()); row < task.rows; row += 32) {
    is_marked = is_marked || shared.redo[row] != 0;
  }
  if (ballot(thread, is_marked) == 0) return;
  auto& scratch = *reinterpret_cast<attention::Float64Shared*>(shared.stages);
  BROACH_ROLLED
  for (int row = 0; row < task.rows; ++row) {
    if (shared.redo[row] == 0 && !kConfig.has(Control::kWholeBlockRerun)) continue;
    rerun_head<kConfig.threads()>(thread, params, task.first_row + row, task.head, task.slot,
                                  keys_of(params, task, shared, row), scratch);
  }
}

/// Computes a block's rows with a main loop: WarpMainLoop or WarpgroupMainLoop.
template <class MainLoop>
BROACH_DEVICE void prefill_block(Thread thread, const BroachWindowRowsPrefill& params) {
  typename MainLoop::Shared& shared = MainLoop::shared(thread);
  PrefillTask task;
  if (!find_task(thread, params, task)) return;
  load_last_keys(thread, params, task, shared);
  sync_block(thread);
  const KeyRange keys = keys_of_rows(thread, params.common, task, shared, 0, task.rows);

  load_prefill_queries(thread, params.common, task, shared);
  BandRows rows;
  BandOutputs outputs;
  // Once, and once more where values have to be cleaned.
  BROACH_ROLLED
  for (bool clean = false;; clean = true) {
    MainLoop::run(thread, params.common, task, keys, clean, shared, rows, outputs);
    sync_block(thread);
    if (clean || shared.unclean[0] == 0) break;
  }
  write_band(thread, params.common, task, shared, rows, outputs);
  sync_block(thread);
  rerun_rows(thread, params.common, task, shared);
}

}  // namespace broach::window_rows
