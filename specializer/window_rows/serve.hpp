#pragma once

#include "broach/result.hpp"
#include "broach/window_rows.hpp"
#include "specializer/target.hpp"

namespace broach::specializer::window_rows {

/// Says whether each field of a shape is in range and the fields agree, on whatever target.
///
/// Errors:  kInvalidArgument with the field, its value, and what would work.
Result<void> check_ranges(const WindowRowsShape& shape);

/// The shape with every default replaced by what the target uses, if a kernel serves it there.
///
/// Errors:  as check_ranges; kUnsupported (reason kNoKernel) with the form, arithmetic or layout
/// that has no kernel,
///          and what has.
Result<WindowRowsShape> resolve(const WindowRowsShape& shape, const Target& target);

}  // namespace broach::specializer::window_rows
