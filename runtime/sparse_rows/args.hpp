#pragma once

#include "broach/sparse_rows.hpp"
#include "kernel_src/sparse_rows/params.h"

namespace broach::runtime {

/// Checks what the host can see of a launch.
///
/// Errors:  kInvalidArgument naming the argument, its value and its bound.
Result<void> check_sparse_rows_args(const SparseRowsShape& shape,
                                    const broach_sparse_rows_args& args);

/// What the kernels are launched with.
BroachSparseRows sparse_rows_params(const SparseRowsShape& shape,
                                    const broach_sparse_rows_args& args) noexcept;

}  // namespace broach::runtime
