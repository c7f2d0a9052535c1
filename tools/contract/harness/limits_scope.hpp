#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tools/contract/harness/family.hpp"
#include "tools/contract/harness/limits.hpp"
#include "tools/contract/harness/sweep.hpp"

namespace broach::contract {

/// Which targets gate 5 compiles for: one chip of each generation, or all that broach knows.
enum class LimitTargets : std::uint8_t { kGenerations, kEvery };

/// What gate 5 compiles in a sweep. A whole sweep takes every kernel for the chips that stand for a
/// kind of their own and the widest ones for the others; a quick one the widest for a chip of each
/// kind (of generations alone: for the chip that has most), and one of each that every target
/// serves for the others.
std::vector<LimitScope> limit_scopes(std::span<const ContractFamily* const> families, Sweep sweep,
                                     LimitTargets targets);

/// What a target of the sweep's own choice gets: its deepest list.
std::vector<LimitKernel> deepest_kernels(std::span<const ContractFamily* const> families,
                                         Sweep sweep);

}  // namespace broach::contract
