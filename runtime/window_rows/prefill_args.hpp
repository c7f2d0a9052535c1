#pragma once

#include "broach/window_rows.hpp"
#include "kernel_src/window_rows/params.h"

namespace broach::runtime {

/// Checks every argument of a prefill that the host can see.
///
/// Offsets, positions, slots, pages and `hi` are in device memory: they are the caller's contract,
/// and the `checked` build's to look at. A ring that is too short for the chunk is refused where
/// one sequence tells its rows.
///
/// Errors:  kInvalidArgument naming the argument, its value and its bound.
Result<void> check_prefill_args(const WindowRowsShape& shape,
                                const broach_window_rows_prefill_args& args);

/// The kernel's parameter struct.
BroachWindowRowsPrefill prefill_params(const WindowRowsShape& shape,
                                       const broach_window_rows_prefill_args& args) noexcept;

}  // namespace broach::runtime
