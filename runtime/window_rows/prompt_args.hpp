#pragma once

#include "broach/runtime.hpp"
#include "kernel_src/window_rows/params.h"

namespace broach::runtime {

/// Checks every argument of a prompt that the host can see.
///
/// Offsets, positions, slots, pages and `hi` are in device memory: they are the caller's contract,
/// and the `checked` build's to look at. A ring that is too short for the chunk is refused where
/// one sequence tells its rows.
///
/// Errors:  kInvalidArgument naming the argument, its value and its bound.
Result<void> check_prompt_args(const WindowRowsShape& shape, const PromptArgs& args);

/// The kernel's parameter struct.
BroachWindowRowsPrompt prompt_params(const WindowRowsShape& shape, const PromptArgs& args) noexcept;

}  // namespace broach::runtime
