#pragma once

#include <string>

#include "broach/metrics.hpp"
#include "tools/broach/output.hpp"

namespace broach::tool {

/// {"events": {"published": 3, …}, "durations": [{"operation", "cause", "count", "sum_seconds",
/// "buckets": [{"up_to_seconds", "count"}, …]}, …]}; a bucket without a bound has null, and what
/// never happened is left out.
Json to_json(const Metrics& process);

/// The same for people, a line each.
std::string lines_of(const Metrics& process);

}  // namespace broach::tool
