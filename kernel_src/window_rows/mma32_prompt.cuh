#pragma once

// window_rows prompt, arith=mma32 (mma32_arith.cuh has the mathematics). Blocks as in
// prompt_block.cuh. Chips: sm_80 and later, and the host.

#include "window_rows/mma32_arith.cuh"

#include "window_rows/prompt_warp.cuh"

#include "window_rows/prompt_block.cuh"

BROACH_GLOBAL(broach_window_rows_mma32_prompt, broach::window_rows::kPromptThreads,
              BroachWindowRowsPrompt, broach::NoShared) {
  broach::window_rows::prompt_block(thread, params);
}
