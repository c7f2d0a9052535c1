#pragma once

#include "broach/qk_rows.hpp"
#include "kernel_src/qk_rows/params.h"

namespace broach::runtime {

/// Checks what the host can see of a launch.
///
/// Errors:  kInvalidArgument naming the argument, its value and its bound.
Result<void> check_qk_rows_args(const QkRowsShape& shape, const broach_qk_rows_args& args);

/// What the kernel is launched with.
BroachQkRows qk_rows_params(const QkRowsShape& shape, const broach_qk_rows_args& args) noexcept;

}  // namespace broach::runtime
