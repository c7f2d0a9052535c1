#pragma once

// window_rows prefill, arith=mma32 (mma32_arith.cuh has the mathematics). Blocks as in
// prefill_block.cuh. Chips: sm_80 and later, and the host.

#include "window_rows/mma32_arith.cuh"

#include "window_rows/prefill_warp.cuh"

#include "window_rows/prefill_block.cuh"

BROACH_GLOBAL(broach_window_rows_mma32_prefill, broach::window_rows::kPrefillThreads,
              BroachWindowRowsPrefill, broach::NoShared) {
  broach::window_rows::prefill_block(thread, params);
}
