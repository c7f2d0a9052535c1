#pragma once

// window_rows prefill, arith=tile64 and tile64_ex2, multiplied by warpgroups: tile64_prefill.cuh's
// bits. Chips: sm_90a.

#include "window_rows/prefill_block.cuh"
#include "window_rows/prefill_warpgroup.cuh"

BROACH_GLOBAL(broach_window_rows_tile64_prefill, broach::window_rows::kConfig.threads(),
              BroachWindowRowsPrefill, broach::NoShared) {
  broach::window_rows::prefill_block<broach::window_rows::WarpgroupMainLoop>(thread, params);
}
