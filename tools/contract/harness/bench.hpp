#pragma once

#include "broach/result.hpp"
#include "runtime/device.hpp"
#include "runtime/load_plan.hpp"
#include "specializer/forge.hpp"
#include "specializer/plan.hpp"

namespace broach::contract {

/// Where kernels of a contract run, and what makes their binaries.
///
/// Owns:    nothing; the runtime that both belong to outlives it.
struct Bench {
  runtime::Device* device = nullptr;
  specializer::Forge* forge = nullptr;
};

/// A plan's binary on the bench's device, compiled where the cache does not have it. What the live
/// device says of its functions is recorded beside it.
///
/// Errors:  the forge's and the device's.
Result<runtime::LoadedPlan> load(const Bench& bench, const specializer::Plan& plan);

}  // namespace broach::contract
