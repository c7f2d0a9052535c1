#pragma once

// window_rows prefill, arith=tile64 and tile64_ex2 (softmax.cuh has the mathematics), multiplied by
// warps. Blocks as in prefill_block.cuh. Chips: sm_80 and later, and the host.

#include "window_rows/prefill_block.cuh"
#include "window_rows/prefill_warp.cuh"

BROACH_GLOBAL(broach_window_rows_tile64_prefill, broach::window_rows::kConfig.threads(),
              BroachWindowRowsPrefill, broach::NoShared) {
  broach::window_rows::prefill_block<broach::window_rows::WarpMainLoop>(thread, params);
}
