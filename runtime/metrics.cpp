#include "runtime/metrics.hpp"

#include <array>
#include <string>

#include "cache/metrics.hpp"

namespace broach {
namespace runtime {
namespace {

static_assert(kMetricBuckets == cache::kDurationBuckets);

DurationHistogram histogram_of(cache::Timing timing, const cache::Durations& reading) {
  const cache::TimingName name = cache::name_of(timing);
  return {name.operation, name.cause, reading.count(), static_cast<double>(reading.sum_ns) * 1e-9,
          reading.buckets};
}

}  // namespace

Metrics read_metrics(cache::Cache& cache) {
  Metrics metrics;
  for (const auto& [name, count] : cache.counters().values) metrics.events.push_back({name, count});
  for (std::size_t i = 0; i < cache::kTimings; ++i) {
    const auto timing = static_cast<cache::Timing>(i);
    metrics.durations.push_back(histogram_of(timing, cache.metrics().read(timing)));
  }
  return metrics;
}

void write(const Metrics& metrics, Exposition& to) {
  to.metric("broach_cache_events_total", Exposition::Kind::kCounter,
            "Cache events of this process.");
  for (const EventCount& event : metrics.events) to.sample({{"event", event.name}}, event.count);
  std::array<double, kMetricBuckets> bounds{};
  for (std::size_t i = 0; i < bounds.size(); ++i) bounds[i] = bucket_bound_seconds(i);
  to.metric("broach_duration_seconds", Exposition::Kind::kHistogram,
            "Time that this process took, by operation and by who answered or how it ended.");
  for (const DurationHistogram& each : metrics.durations) {
    if (each.count == 0) continue;
    to.histogram({{"operation", std::string(each.operation)}, {"cause", std::string(each.cause)}},
                 bounds, each.buckets, each.sum_seconds);
  }
}

}  // namespace runtime

std::string Metrics::prometheus() const {
  runtime::Exposition text;
  runtime::write(*this, text);
  return text.text();
}

}  // namespace broach
