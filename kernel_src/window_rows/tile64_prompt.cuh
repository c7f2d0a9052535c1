#pragma once

// window_rows prompt, arith=tile64 (tile64_arith.cuh has the mathematics): the bits of the decode
// form for every row. Blocks as in prompt_block.cuh. Chips: sm_80 and later, and the host.

#include "window_rows/tile64_arith.cuh"

#include "window_rows/prompt_warp.cuh"

#include "window_rows/prompt_block.cuh"

BROACH_GLOBAL(broach_window_rows_tile64_prompt, broach::window_rows::kPromptThreads,
              BroachWindowRowsPrompt, broach::NoShared) {
  broach::window_rows::prompt_block(thread, params);
}
