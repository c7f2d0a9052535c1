#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "broach/result.hpp"
#include "cache/cache.hpp"
#include "specializer/forge.hpp"
#include "tools/broach/nearest.hpp"
#include "tools/broach/warm_jobs.hpp"

namespace broach::tool {

/// Whose binaries count as covering a plan.
enum class Makers : std::uint8_t {
  kThisMachines,  ///< As a look-up here: its own compiler's, or any one's where it has none.
  kAny,           ///< Any compiler's, as on a machine that has none.
};

/// A plan and the binary that serves it, or what comes nearest.
struct Coverage {
  const WarmJob* job = nullptr;
  Makers makers = Makers::kThisMachines;  ///< kAny also where this machine has no compiler.
  std::optional<cache::Key> key;          ///< What was looked for; absent under kAny for a miss.
  std::optional<cache::Hit> hit;
  std::string why;  ///< Why there is none, where it is not a mere miss: a damaged object.
  std::optional<Nearest> nearest;
};

struct CoverageReport {
  std::vector<Coverage> rows;  ///< In the jobs' order.
  std::size_t covered = 0;
};

/// Looks each job's binary up and checks it whole; nothing is compiled or promoted.
///
/// Errors:  the cache's, where it cannot be listed; the compilers', but for one that is missing.
Result<CoverageReport> check_coverage(specializer::Forge& forge, cache::Cache& cache,
                                      const std::vector<WarmJob>& jobs, Makers makers);

/// The keys of a report's binaries.
///
/// Errors:  kNotWarmed with a line a binary that is missing.
Result<std::vector<cache::Key>> covered_keys(const CoverageReport& report);

}  // namespace broach::tool
