#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "specializer/forge.hpp"

namespace broach::specializer {

/// What obtaining an artifact needs besides the cache: compilers, and a clock.
struct ObtainSteps {
  std::function<Result<CompilerIdentity>(const Target&)> identity;
  std::function<Result<CompileOutput>(const Plan&)> compile;
  std::function<std::int64_t()> now_unix_ms;
  std::string limits = {};  ///< Under which `compile` works, as Compilers::limits has them.
};

/// Looks a plan up, else compiles it, reads its limits and publishes it.
///
/// A binary is published only under the key of the compiler that made it. Where no compiler's
/// identity can be learnt, for whatever reason, a binary that any compiler made of the same plan
/// serves.
///
/// Errors:  as Forge::obtain; the cache remembers those that would come again.
Result<Artifact> obtain(cache::Cache& cache, const ObtainSteps& steps, const Plan& plan,
                        OnMiss on_miss);

/// The least CUDA version of a driver that loads a target's binary made by a compiler; none where
/// none applies.
Version least_driver(const Target& target, const CompilerIdentity& compiler);

}  // namespace broach::specializer
