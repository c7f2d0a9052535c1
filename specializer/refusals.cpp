#include "specializer/refusals.hpp"

#include <fmt/core.h>

#include <string>

namespace broach::specializer {
namespace {

/// "spills 16 bytes", "spills 3 vector registers", or nothing.
std::string spills_of(const LaunchLimits& limits) {
  if (limits.spill_bytes.value_or(0) > 0) {
    return fmt::format("spills {} bytes a thread", *limits.spill_bytes);
  }
  // AMD's binaries count registers.
  if (limits.vgpr_spills.value_or(0) > 0) {
    return fmt::format("spills {} vector registers", *limits.vgpr_spills);
  }
  if (limits.sgpr_spills.value_or(0) > 0) {
    return fmt::format("spills {} scalar registers", *limits.sgpr_spills);
  }
  return {};
}

}  // namespace

Result<void> check_refusals(const Plan& plan, std::span<const LaunchLimits> limits) {
  for (const LaunchLimits& each : limits) {
    std::string found;
    if (plan.refusals.spills) found = spills_of(each);
    if (found.empty() && plan.refusals.local_memory && each.stack_bytes.value_or(0) > 0) {
      found = fmt::format("has {} bytes of local memory a thread", *each.stack_bytes);
    }
    if (found.empty()) continue;
    return Error{ErrorCode::kLimitExceeded,
                 fmt::format("{} for {}: function {} {}, which the family refuses", plan.family,
                             plan.target.name, each.function, found),
                 ""};
  }
  return {};
}

}  // namespace broach::specializer
