#pragma once

#include "broach/result.hpp"
#include "broach/types.hpp"
#include "specializer/target.hpp"

namespace broach::specializer::window_rows {

/// The arithmetic that `arith=default` means. The only place that decides it.
Arith default_arith(Form form, const Target& target);

/// Says whether a kernel exists for a shape whose fields are each in range.
///
/// Errors:  kUnsupported with the form, arithmetic or layout that has no kernel, and what has.
Result<void> check_served(const WindowRowsShape& shape, const Target& target);

}  // namespace broach::specializer::window_rows
