#pragma once

#include <span>
#include <vector>

#include "tools/contract/harness/family.hpp"
#include "tools/contract/harness/limits.hpp"
#include "tools/contract/harness/sweep.hpp"

namespace broach::contract {

/// What gate 5 compiles in a sweep: something for every target that broach knows. A whole sweep
/// takes every kernel for the chips that stand for a kind of their own and the widest ones for the
/// others; a quick one the widest for a chip of each kind, and one of each that every target serves
/// for the others.
std::vector<LimitScope> limit_scopes(std::span<const ContractFamily* const> families, Sweep sweep);

/// What a target of the sweep's own choice gets: its deepest list.
std::vector<LimitKernel> deepest_kernels(std::span<const ContractFamily* const> families,
                                         Sweep sweep);

}  // namespace broach::contract
