#pragma once

#include <vector>

#include "tools/contract/harness/limits.hpp"
#include "tools/contract/window_rows/cases.hpp"

namespace broach::contract {

/// What gate 5 compiles in a sweep: something for every target that broach knows. A whole sweep
/// takes every kernel for the chips that stand for a kind of their own and the widest ones for the
/// others; a quick one the widest for a chip of each kind, and one kernel of each arithmetic and
/// form for the others.
std::vector<LimitScope> limit_scopes(Sweep sweep);

/// What a target of the sweep's own choice gets: its deepest list.
std::vector<LimitKernel> deepest_kernels(Sweep sweep);

}  // namespace broach::contract
