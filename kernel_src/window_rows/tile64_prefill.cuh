#pragma once

// window_rows prefill, arith=tile64 (tile64_arith.cuh has the mathematics): the bits of the decode
// form for every row. Blocks as in prefill_block.cuh. Chips: sm_80 and later, and the host.

#include "window_rows/tile64_arith.cuh"

#include "window_rows/prefill_warp.cuh"

#include "window_rows/prefill_block.cuh"

BROACH_GLOBAL(broach_window_rows_tile64_prefill, broach::window_rows::kPrefillThreads,
              BroachWindowRowsPrefill, broach::NoShared) {
  broach::window_rows::prefill_block(thread, params);
}
