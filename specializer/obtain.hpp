#pragma once

#include <cstdint>
#include <functional>

#include "specializer/forge.hpp"

namespace broach::specializer {

/// What obtaining an artifact needs besides the cache: compilers, and a clock.
struct ObtainSteps {
  std::function<Result<CompilerIdentity>(const Target&)> identity;
  std::function<Result<CompileOutput>(const Plan&)> compile;
  std::function<std::int64_t()> now_unix_ms;
};

/// Looks a plan up, else compiles it, reads its limits and publishes it.
///
/// A binary is published only under the key of the compiler that made it. Where no compiler can be
/// found, a binary that any compiler made of the same plan serves.
///
/// Errors:  as Forge::obtain.
Result<Artifact> obtain(cache::Cache& cache, const ObtainSteps& steps, const Plan& plan,
                        OnMiss on_miss);

/// How long a failed compile is remembered; zero where the next try may well succeed.
///
/// Units:   milliseconds.
std::int64_t remembered_ms(ErrorCode code) noexcept;

/// The least driver that loads a target's binary made by a compiler, "" where none applies.
std::string least_driver(const Target& target, const CompilerIdentity& compiler);

}  // namespace broach::specializer
