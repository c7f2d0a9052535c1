#pragma once

#include <map>
#include <vector>

#include "cache/cache.hpp"
#include "specializer/plan.hpp"
#include "tools/contract/harness/limits.hpp"

namespace broach::contract {

using LimitsByKey = std::map<cache::Key, std::vector<LaunchLimits>>;

/// What a cache's index has of every entry.
///
/// Errors:  the index's.
Result<LimitsByKey> recorded_limits(cache::Cache& cache);

/// Everything that says what one binary's functions need, beside the binary itself.
struct Statements {
  const cache::Object* object = nullptr;
  std::vector<LaunchLimits> recorded;  ///< By the index.
  std::vector<LaunchLimits> live;      ///< By devices, now and before.
};

/// Holds a binary's statements against each other, against the target and against the known
/// findings, and adds what was found to the target's report.
void check_statements(const LimitKernel& kernel, const specializer::Plan& plan,
                      const Statements& statements, LimitReport& report);

}  // namespace broach::contract
