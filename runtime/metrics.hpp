#pragma once

#include "broach/metrics.hpp"
#include "cache/cache.hpp"
#include "runtime/exposition.hpp"

namespace broach::runtime {

/// What a cache, and those who use it, have counted and timed in this process.
Metrics read_metrics(cache::Cache& cache);

/// Writes events and durations; a histogram of what never happened is left out.
void write(const Metrics& metrics, Exposition& to);

}  // namespace broach::runtime
