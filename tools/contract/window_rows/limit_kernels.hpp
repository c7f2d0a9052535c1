#pragma once

#include <vector>

#include "broach/window_rows.hpp"
#include "specializer/plan.hpp"
#include "tools/contract/harness/family.hpp"

namespace broach::contract::window_rows {

/// A kernel for gate 5, with the findings that it may show.
LimitKernel limit_kernel(const WindowRowsShape& shape, const specializer::Variant& variant = {});

/// The family's kernels for gate 5.
std::vector<LimitKernel> limit_kernels(LimitDepth depth);

/// The family's known spills.
std::vector<Finding> known_findings();

}  // namespace broach::contract::window_rows
