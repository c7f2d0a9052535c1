#pragma once

// The rows of a prefill block: which sequence they belong to, which keys they see, their queries.
//
// Block: `rows` consecutive rows of one sequence x one query head; grid = row blocks x query heads.

#include "attention/kv_pipeline.cuh"
#include "common/platform.cuh"
#include "common/warp.cuh"
#include "tiles/copy.cuh"
#include "window_rows/keys.cuh"

namespace broach::window_rows {

constexpr attention::PipelineConfig kPipeline = kConfig.pipeline();
constexpr int kStagesOfK = kPipeline.stages_of_k();
constexpr int kStageStride = kPipeline.stage_stride();
constexpr int kStageElems = kPipeline.stage_elems();

constexpr int kPrefillQueryStride = kConfig.head_dim + kRowPadElems;
constexpr int kQueryElems =
    kConfig.rows * (kConfig.swizzled ? kConfig.head_dim : kPrefillQueryStride);

/// Where element (row, dim) of a block's queries lies, in elements from their start.
BROACH_DEVICE constexpr int query_at(int row, int dim) {
  if constexpr (kConfig.swizzled) {
    // 64 rows and 64 dims a swizzled tile.
    const int tile = row / 64 * (kConfig.head_dim / kSwizzleColumns) + dim / kSwizzleColumns;
    return tile * 64 * kSwizzleColumns + swizzled_at(row % 64, dim % kSwizzleColumns);
  } else {
    return row * kPrefillQueryStride + dim;
  }
}

struct PrefillShared {
  alignas(16) unsigned short q[kQueryElems];
  alignas(16) unsigned short stages[kConfig.stages * kStageElems];
  int last[kConfig.rows];
  unsigned redo[kConfig.rows];
  unsigned unclean[4];  // a product that rows share is not finite
};

/// The rows a block works on. Rows are counted over all sequences.
struct PrefillTask {
  int slot;
  int first_row, rows;    // of this block
  int position;           // of its first row
  int sequence_position;  // p0
  int past;               // first position behind the sequence's chunk
  int head, kv_head;
};

/// Finds the sequence and the rows of row block `block`, counted from the first; false where the
/// grid has more blocks than rows need.
BROACH_DEVICE bool find_rows(const BroachWindowRowsPrefill& params, int block, int head,
                             PrefillTask& task) {
  const Params& p = params.common;
  task.head = head;
  task.kv_head = task.head / ratio_of(p);
  for (int sequence = 0; sequence < params.sequences; ++sequence) {
    const int begin = params.offsets[sequence];
    const int count = params.offsets[sequence + 1] - begin;
    const int blocks = (count + kConfig.rows - 1) / kConfig.rows;
    if (block >= blocks) {
      block -= blocks;
      continue;
    }
    task.slot = p.slots[sequence];
    task.first_row = begin + block * kConfig.rows;
    const int rest = count - block * kConfig.rows;
    task.rows = rest < kConfig.rows ? rest : kConfig.rows;
    task.sequence_position = p.positions[sequence];
    task.position = task.sequence_position + block * kConfig.rows;
    task.past = task.sequence_position + count;
    return true;
  }
  return false;
}

/// The same for this block of a grid of row blocks x query heads. Later rows see more keys: first
/// come those that take longest.
BROACH_DEVICE bool find_task(Thread thread, const BroachWindowRowsPrefill& params,
                             PrefillTask& task) {
  return find_rows(params, static_cast<int>(thread.grid_x() - 1 - thread.block_x()),
                   static_cast<int>(thread.block_y()), task);
}

/// Keys that row `row` of the block sees; none for rows the block does not have.
BROACH_DEVICE KeyRange keys_of(const Params& p, const PrefillTask& task,
                               const PrefillShared& shared, int row) {
  if (row >= task.rows) return {0, -1};
  return {first_key(p, task.position + row), shared.last[row]};
}

/// Every key that a row from `first_row` to before `end_row` of the block sees, and those between
/// them: the same for all lanes of a warp.
BROACH_DEVICE KeyRange keys_of_rows(Thread thread, const Params& p, const PrefillTask& task,
                                    const PrefillShared& shared, int first_row, int end_row) {
  int last = -1;
  BROACH_ROLLED
  for (int row = first_row + static_cast<int>(thread.lane()); row < end_row; row += 32) {
    if (row < task.rows && shared.last[row] > last) last = shared.last[row];
  }
  BROACH_UNROLL
  for (unsigned mask = kWarpLanes / 2; mask > 0; mask /= 2) {
    const int other = shuffle_xor(thread, last, mask);
    if (other > last) last = other;
  }
  return {first_key(p, task.position + first_row), last};
}

/// Leaves each row's last key in shared memory.
BROACH_DEVICE void load_last_keys(Thread thread, const BroachWindowRowsPrefill& params,
                                  const PrefillTask& task, PrefillShared& shared) {
  const int row = static_cast<int>(thread.index());
  if (row == 0) shared.unclean[0] = 0;
  if (row >= kConfig.rows) return;
  const Params& p = params.common;
  if constexpr (kConfig.checked) {
    if (Kv::layout(layout_of(p)) == Layout::kRing &&
        task.past - first_key(p, task.sequence_position) > p.cache.length) {
      fail(thread, "the ring does not hold the window and the chunk's rows", task.past);
    }
  }
  int last = task.position + row;
  if (row < task.rows) {
    if (params.hi != nullptr && !kConfig.has(Control::kHiIgnored)) {
      last = params.hi[task.first_row + row];
      if constexpr (kConfig.checked) {
        if (last < task.position + row || last >= task.past) {
          fail(thread, "hi is not between the row's position and the chunk's end", last);
        }
      }
    }
    Kv::check(thread, p.cache, layout_of(p), task.slot, {first_key(p, task.position + row), last});
  }
  shared.last[row] = last;
  shared.redo[row] = 0;
}

BROACH_DEVICE void load_prefill_queries(Thread thread, const Params& p, const PrefillTask& task,
                                        PrefillShared& shared) {
  const unsigned short* const q = elements(p.attention.q) +
                                  task.first_row * p.attention.q_row_stride +
                                  task.head * p.attention.q_head_stride;
  constexpr int kVectors = kConfig.head_dim / 8;
  for (int vector = static_cast<int>(thread.index()); vector < kConfig.rows * kVectors;
       vector += kConfig.threads()) {
    const int row = vector / kVectors;
    const int column = vector % kVectors * 8;
    const bool present = row < task.rows;
    copy_16_bytes(shared.q + query_at(row, column),
                  q + (present ? row : 0) * p.attention.q_row_stride + column, present);
  }
}

}  // namespace broach::window_rows
