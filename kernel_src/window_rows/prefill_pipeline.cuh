#pragma once

// A prefill block of a producer warp and consumer warpgroups: WGMMAs, softmax and rescales of
// prefill_warpgroup.cuh, in the same order for every row, fed by the tensor copy engine.
//
// Block: 64 consecutive rows of one sequence a consumer warpgroup x one query head, and behind them
// the producer; grid = query heads x row blocks. Memory as in prefill_slots.cuh. Chips: sm_90a.

#include "window_rows/prefill_block.cuh"
#include "window_rows/prefill_consumer.cuh"
#include "window_rows/prefill_producer.cuh"
#include "window_rows/prefill_store.cuh"

namespace broach::window_rows {

#if defined(BROACH_CUDA)

template <int kRegisters>
BROACH_DEVICE void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" : : "n"(kRegisters));
}
template <int kRegisters>
BROACH_DEVICE void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" : : "n"(kRegisters));
}

/// The block, from its task to its outputs.
BROACH_DEVICE void prefill_pipeline(Thread thread, const BroachWindowRowsTensorPrefill& params) {
  const Params& p = params.prefill.common;
  PipelineShared& shared = pipeline_shared();
  {
    PrefillTask task;
    // Heads are the fastest of the grid: the blocks that take longest start first, whoever's.
    if (!find_rows(params.prefill, static_cast<int>(thread.grid_y() - 1 - thread.block_y()),
                   static_cast<int>(thread.block_x()), task)) {
      return;
    }
    load_last_keys(thread, params.prefill, task, shared);
    const int row = static_cast<int>(thread.index());
    if (row < kConfig.rows) shared.keys[row] = keys_of(p, task, shared, row);
    if (row == 0) {
      shared.task = task;
      for (int slot = 0; slot < kSlots; ++slot) {
        barrier_init(shared.full[slot], 1);
        barrier_init(shared.empty[slot], kConfig.warps);
      }
      barrier_init(shared.q_full, 1);
      barrier_fence_start();
    }
  }
  sync_block(thread);
  const PrefillTask& task = shared.task;
  const KeyRange all = keys_of_rows(thread, p, task, shared, 0, task.rows);
  // From one lane: a compiler that sees a warp take one path lets MMAs run on past its ends.
  const KeyRange keys{shuffle(thread, all.first, 0), shuffle(thread, all.last, 0)};
  const int warpgroup = shuffle(thread, static_cast<int>(thread.warp()) / 4, 0);

  if (warpgroup == kConsumers) {
    if constexpr (kConsumers > 1) give_registers<kConsumers == 2 ? 24 : 32>();
    if (thread.warp() == kConfig.warps) produce(thread, params, keys, shared);
    return;
  }
  if constexpr (kConsumers > 1) take_registers<kConsumers == 2 ? 240 : 160>();
  const int row = warpgroup * 64;
  const KeyRange own = keys_of_rows(thread, p, task, shared, row, row + 64);
  const int own_first = shuffle(thread, own.first, 0) / kTileKeys;
  const int own_last = row < task.rows ? shuffle(thread, own.last, 0) / kTileKeys : own_first - 1;
  const bool up = kPipeline.order == attention::TileOrder::kUp;
  const int first =
      up ? own_first - keys.first_tile<kTileKeys>() : keys.last_tile<kTileKeys>() - own_last;
  const int last = first + own_last - own_first;
  LaneRows rows;
  BandOutputs outputs;
  Consumer consumer{p, shared, {}, keys, false};
  if (warpgroup == kConsumers - 1) consumer.pass_turn(warpgroup);
  barrier_wait(shared.q_full, 0);
  BROACH_ROLLED
  for (;; consumer.clean = true) {
    consumer.run(thread, warpgroup, first, last, rows, outputs);
    if (!consumer.clean && may_hold_unseen(rows.band, outputs)) shared.unclean[0] = 1;
    sync_block(thread);
    if (consumer.clean || shared.unclean[0] == 0) break;
  }
  if (!store_band(thread, p, task, rows.band, outputs)) {
    write_band(thread, p, task, shared, rows.band, outputs);
  }
  sync_block(thread);
  rerun_rows(thread, p, task, shared);
}

#endif

}  // namespace broach::window_rows
