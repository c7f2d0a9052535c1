#pragma once

#include <cstdint>
#include <span>

#include "broach/result.hpp"
#include "broach/types.hpp"
#include "runtime/device.hpp"
#include "specializer/plan.hpp"
#include "specializer/target.hpp"

namespace broach::runtime {

/// Says whether a block of a function fits the chip, from the limits its binary states.
///
/// A limit that the binary or the target does not state is not checked. An entry without a block is
/// held by the block that the binary states, and not at all where it states none.
///
/// Errors:  kLimitExceeded naming the function, the limit and both numbers: "… 156 registers x 512
///          threads = 79,872 exceed the chip's 65,536".
Result<void> check_launch(const specializer::KernelEntry& entry, const LaunchLimits& limits,
                          const specializer::Target& target);

/// Fills in what a launch leaves open and the kernel states: a block of 0 threads along x, 0 bytes
/// of dynamic shared memory, a cluster of 0 blocks.
void take_stated_geometry(LaunchConfig& config, const LaunchLimits& limits) noexcept;

/// Holds one launch against what its binary states and what the chip has, before the driver sees
/// it: grid, block, cluster, dynamic shared memory, the number of parameters and their sizes.
///
/// A check that passes costs comparisons alone: it allocates nothing and asks no driver.
///
/// Shapes:  `argument_bytes` one size for each of `config.arguments`, or empty where the caller
///          does not know them: then their number is checked. A struct goes by `params_bytes`.
/// Errors:  kLimitExceeded for more than chip or binary have, kInvalidArgument for a launch that
///          differs from what the kernel states or takes, kUnsupported for what the chip lacks;
///          each names the function, the value and the bound.
/// Threads: any.
Result<void> check_launch(const LaunchConfig& config, const LaunchLimits& limits,
                          const specializer::Target& target,
                          std::span<const std::uint32_t> argument_bytes = {});

}  // namespace broach::runtime
