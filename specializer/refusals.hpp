#pragma once

#include <span>

#include "broach/result.hpp"
#include "broach/types.hpp"
#include "specializer/plan.hpp"

namespace broach::specializer {

/// Holds a plan's binary to what its family refuses.
///
/// Errors:  kLimitExceeded naming the function and what it has.
Result<void> check_refusals(const Plan& plan, std::span<const LaunchLimits> limits);

}  // namespace broach::specializer
