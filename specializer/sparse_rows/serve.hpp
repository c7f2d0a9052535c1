#pragma once

#include "broach/result.hpp"
#include "broach/sparse_rows.hpp"
#include "specializer/target.hpp"

namespace broach::specializer::sparse_rows {

/// Says whether each field of a shape is in range and the fields agree, on whatever target.
///
/// Errors:  kInvalidArgument with the field, its value, and what would work.
Result<void> check_ranges(const SparseRowsShape& shape);

/// The shape without choices that change nothing on a target, if a kernel serves it there.
///
/// Errors:  as check_ranges; kUnsupported where a target has no matrix unit that `tile=mma` has a
///          form for; kLimitExceeded where no tile of one row fits its shared memory.
Result<SparseRowsShape> resolve(const SparseRowsShape& shape, const Target& target);

}  // namespace broach::specializer::sparse_rows
