#include "tools/broach/warm_jobs.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "tools/contract/harness/in_parallel.hpp"

namespace broach::tool {
namespace {

/// Counts a job that had ended well as failed.
void demote(WarmOutcome& outcome, const std::vector<WarmJob>& jobs, std::size_t j, Error error) {
  --(outcome.artifacts[j]->compiled ? outcome.compiled : outcome.hits);
  outcome.artifacts[j].reset();
  outcome.failures.push_back({&jobs[j], std::move(error)});
}

}  // namespace

WarmOutcome run_jobs(specializer::Forge& forge, const std::vector<WarmJob>& jobs,
                     std::size_t threads, const WarmWatcher& watcher) {
  WarmOutcome outcome;
  outcome.artifacts.resize(jobs.size());
  std::vector<std::optional<Error>> errors(jobs.size());
  std::mutex watching;
  const auto work = [&](std::size_t j) {
    auto artifact = forge.obtain(jobs[j].plan, specializer::OnMiss::kCompileAnew);
    const std::lock_guard lock(watching);
    watcher(jobs[j], artifact);
    if (artifact) {
      ++(artifact->compiled ? outcome.compiled : outcome.hits);
      outcome.artifacts[j] = std::move(*artifact);
    } else {
      errors[j] = artifact.error();
    }
  };
  contract::in_parallel(jobs.size(), static_cast<std::uint32_t>(threads), work);
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    if (errors[j]) outcome.failures.push_back({&jobs[j], std::move(*errors[j])});
  }
  return outcome;
}

void demand_stored(WarmOutcome& outcome, const std::vector<WarmJob>& jobs, cache::Cache& fresh) {
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    const auto& artifact = outcome.artifacts[j];
    if (!artifact || fresh.find(artifact->object->key)) continue;
    demote(outcome, jobs, j,
           {ErrorCode::kIo,
            fmt::format("{} was compiled, and no cache directory keeps it; make room there or "
                        "pass --cache-dir",
                        artifact->object->key.key.hex()),
            ""});
  }
}

void demand_spills(WarmOutcome& outcome, const std::vector<WarmJob>& jobs,
                   std::uint32_t max_spill_bytes) {
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    if (!outcome.artifacts[j]) continue;
    const auto& rows = outcome.artifacts[j]->object->limits;
    const auto spills =
        std::find_if(rows.begin(), rows.end(), [max_spill_bytes](const LaunchLimits& limits) {
          return limits.spill_bytes.value_or(0) > max_spill_bytes;
        });
    if (spills == rows.end()) continue;
    demote(outcome, jobs, j,
           {ErrorCode::kLimitExceeded,
            fmt::format("{} spills {} bytes a thread; {} are allowed", spills->function,
                        *spills->spill_bytes, max_spill_bytes),
            ""});
  }
}

}  // namespace broach::tool
