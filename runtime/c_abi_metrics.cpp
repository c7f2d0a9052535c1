#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>

#include "broach/metrics.h"
#include "broach/metrics.hpp"
#include "runtime/c_abi_guard.hpp"

struct broach_metrics {
  explicit broach_metrics(broach::Metrics taken)
      : reading(std::move(taken)), prometheus(reading.prometheus()) {}

  broach::Metrics reading;
  std::string prometheus;
};

namespace {

using broach::ErrorCode;
using broach::runtime::guarded;
using broach::runtime::tell;

static_assert(BROACH_METRIC_BUCKETS == broach::kMetricBuckets);

/// Writes a structure at whatever size the caller's header had.
///
/// `least` is the size of the structure in the first header that had it.
template <class Struct>
broach_status hand_out(Struct row, std::size_t least, const char* name, Struct* to,
                       broach_message* message) {
  std::size_t size = 0;
  std::memcpy(&size, to, sizeof size);
  if (size < least) {
    return tell(message, ErrorCode::kInvalidArgument,
                fmt::format("{0}.size is {1}; set it to sizeof({0}), {2} in this library", name,
                            size, sizeof(Struct)));
  }
  row.size = size;
  std::memcpy(to, &row, std::min(size, sizeof(Struct)));
  return BROACH_OK;
}

broach_status beyond(broach_message* message, const char* what, std::size_t index,
                     std::size_t count) {
  return tell(message, ErrorCode::kNotFound,
              fmt::format("there is no {} {}; there are {}", what, index, count));
}

}  // namespace

broach_status broach_metrics_read(const broach_runtime* runtime, broach_metrics** metrics,
                                  broach_message* message) {
  return guarded(message, [&]() -> broach_status {
    if (metrics == nullptr) return tell(message, ErrorCode::kInvalidArgument, "metrics is NULL");
    *metrics = nullptr;
    if (runtime == nullptr) return tell(message, ErrorCode::kInvalidArgument, "runtime is NULL");
    *metrics = new broach_metrics(runtime->runtime.metrics());
    return BROACH_OK;
  });
}

void broach_metrics_destroy(broach_metrics* metrics) { delete metrics; }

size_t broach_metrics_event_count(const broach_metrics* metrics) {
  return metrics == nullptr ? 0 : metrics->reading.events.size();
}

broach_status broach_metrics_event(const broach_metrics* metrics, size_t index,
                                   broach_event_count* event, broach_message* message) {
  return guarded(message, [&]() -> broach_status {
    if (event == nullptr) return tell(message, ErrorCode::kInvalidArgument, "event is NULL");
    const std::size_t count = broach_metrics_event_count(metrics);
    if (index >= count) return beyond(message, "event", index, count);
    const broach::EventCount& row = metrics->reading.events[index];
    return hand_out(broach_event_count{0, row.name.c_str(), row.count}, sizeof(broach_event_count),
                    "broach_event_count", event, message);
  });
}

size_t broach_metrics_histogram_count(const broach_metrics* metrics) {
  return metrics == nullptr ? 0 : metrics->reading.durations.size();
}

broach_status broach_metrics_histogram(const broach_metrics* metrics, size_t index,
                                       broach_duration_histogram* histogram,
                                       broach_message* message) {
  return guarded(message, [&]() -> broach_status {
    if (histogram == nullptr) {
      return tell(message, ErrorCode::kInvalidArgument, "histogram is NULL");
    }
    const std::size_t count = broach_metrics_histogram_count(metrics);
    if (index >= count) return beyond(message, "histogram", index, count);
    const broach::DurationHistogram& row = metrics->reading.durations[index];
    // Both names are literals, so each ends in a zero byte.
    broach_duration_histogram copy{0,         row.operation.data(), row.cause.data(),
                                   row.count, row.sum_seconds,      {}};
    std::copy(row.buckets.begin(), row.buckets.end(), copy.buckets);
    return hand_out(copy, sizeof(broach_duration_histogram), "broach_duration_histogram", histogram,
                    message);
  });
}

double broach_metrics_bucket_bound(size_t bucket) { return broach::bucket_bound_seconds(bucket); }

const char* broach_metrics_prometheus(const broach_metrics* metrics) {
  return metrics == nullptr ? "" : metrics->prometheus.c_str();
}
