#pragma once

#include <memory>
#include <vector>

#include "broach/result.hpp"
#include "runtime/device.hpp"
#include "specializer/forge.hpp"
#include "specializer/plan.hpp"

namespace broach::runtime {

/// A plan's binary, checked against its limits and loaded on a device.
///
/// Owns:    the module; the device outlives it.
struct LoadedPlan {
  std::unique_ptr<Module> module;
  specializer::Artifact artifact;
  /// As the device reports them, one a plan entry, under the name that the binary has for it.
  std::vector<LaunchLimits> live;
};

/// Obtains a plan's binary, demands that every entry fits the chip, loads it, and asks the live
/// device about its functions.
///
/// A binary that the driver refuses is set aside once and obtained again; a second refusal is
/// reported with the versions of both sides.
///
/// Errors:  kInvalidArgument when the plan is another target's; the forge's; kLimitExceeded;
/// kDriver with driver, toolkit and the driver it needs.
Result<LoadedPlan> load_plan(specializer::Forge& forge, Device& device,
                             const specializer::Plan& plan, specializer::OnMiss on_miss);

/// Writes what the live device said of a binary's functions beside it. A database is slower than
/// the whole load, so whoever waits for a kernel leaves this for later.
void record_live_limits(cache::Cache& cache, const Device& device, const cache::Key& key,
                        const std::vector<LaunchLimits>& live);

}  // namespace broach::runtime
