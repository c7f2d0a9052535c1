#pragma once

// window_rows prompt, arith=tile64, multiplied by warpgroups: tile64_prompt.cuh's bits. Chips:
// sm_90a.

#include "window_rows/tile64_arith.cuh"

#include "window_rows/prompt_warpgroup.cuh"

#include "window_rows/prompt_block.cuh"

BROACH_GLOBAL(broach_window_rows_tile64_prompt, broach::window_rows::kPromptThreads,
              BroachWindowRowsPrompt, broach::NoShared) {
  broach::window_rows::prompt_block(thread, params);
}
