#pragma once

#include "broach/result.hpp"
#include "broach/types.hpp"
#include "specializer/plan.hpp"
#include "specializer/target.hpp"

namespace broach::runtime {

/// Says whether a block of a function fits the chip, from the limits its binary states.
///
/// A limit that the binary or the target does not state is not checked.
///
/// Errors:  kLimitExceeded naming the function, the limit and both numbers: "… 156 registers x 512
///          threads = 79,872 exceed the chip's 65,536".
Result<void> check_launch(const specializer::KernelEntry& entry, const LaunchLimits& limits,
                          const specializer::Target& target);

}  // namespace broach::runtime
