#pragma once

#include "broach/window_rows.hpp"
#include "kernel_src/window_rows/params.h"

namespace broach::runtime {

/// Checks every argument of a decode that the host can see.
///
/// Errors:  kInvalidArgument naming the argument, its value and its bound.
Result<void> check_decode_args(const WindowRowsShape& shape,
                               const broach_window_rows_decode_args& args);

/// The kernels' parameter struct, all but `max_partials`, which is the plan's.
BroachWindowRowsDecode decode_params(const WindowRowsShape& shape,
                                     const broach_window_rows_decode_args& args) noexcept;

}  // namespace broach::runtime
