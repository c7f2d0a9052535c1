#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "broach/result.hpp"
#include "specializer/forge.hpp"
#include "specializer/plan.hpp"

namespace broach::tool {

/// One binary that a warm run wants in the cache.
struct WarmJob {
  specializer::Plan plan;
  std::string wanted_by;  ///< The models or the journal that ask for it.
};

/// A job that did not end with a stored binary.
struct WarmFailure {
  const WarmJob* job = nullptr;
  Error error;
};

/// What became of the jobs: each is compiled, a hit, or failed.
struct WarmOutcome {
  std::size_t compiled = 0;
  std::size_t hits = 0;
  std::vector<std::optional<specializer::Artifact>> artifacts;  ///< In the jobs' order.
  std::vector<WarmFailure> failures;
};

/// Told of each finished job, one at a time.
using WarmWatcher = std::function<void(const WarmJob&, const Result<specializer::Artifact>&)>;

/// Looks every job up, compiling what is missing, `threads` at a time.
WarmOutcome run_jobs(specializer::Forge& forge, const std::vector<WarmJob>& jobs,
                     std::size_t threads, const WarmWatcher& watcher);

/// Turns a job whose binary a second look at the directories does not find into a failure: it was
/// compiled, and nothing was kept.
void demand_stored(WarmOutcome& outcome, const std::vector<WarmJob>& jobs, cache::Cache& fresh);

/// Turns a job whose binary spills more bytes a thread than allowed into a failure.
void demand_spills(WarmOutcome& outcome, const std::vector<WarmJob>& jobs,
                   std::uint32_t max_spill_bytes);

}  // namespace broach::tool
