#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "broach/export.hpp"

namespace broach {

/// Buckets of a duration histogram.
inline constexpr std::size_t kMetricBuckets = 32;

/// The largest duration that a bucket holds: 1 us, 2 us, 4 us … and without bound in the last.
///
/// Units:   seconds.
constexpr double bucket_bound_seconds(std::size_t bucket) noexcept {
  if (bucket + 1 >= kMetricBuckets) return std::numeric_limits<double>::infinity();
  return 1e-6 * static_cast<double>(std::uint64_t{1} << bucket);
}

/// How often something happened since the runtime was made.
struct EventCount {
  std::string name;  ///< "published", "store_failed_enospc" …
  std::uint64_t count = 0;
};

/// How long one kind of work took, apart by the layer that answered or by how it ended.
struct DurationHistogram {
  std::string_view operation;  ///< "look_up", "wait", "compile", "publish", "load"
  std::string_view cause;      ///< "memory", "user", "miss"; "done", "rejected", "timed_out" …
  std::uint64_t count = 0;
  double sum_seconds = 0;
  std::array<std::uint64_t, kMetricBuckets> buckets{};  ///< Each by itself, not summed up.
};

/// What a runtime has counted and timed. Launches of an operator add nothing to it.
struct BROACH_API Metrics {
  std::vector<EventCount> events;            ///< Those that happened, by name.
  std::vector<DurationHistogram> durations;  ///< Every kind, also those that never happened.

  /// Prometheus's text exposition format: `broach_cache_events_total` and the histogram
  /// `broach_duration_seconds`.
  ///
  /// Source:  the text-based exposition format, version 0.0.4.
  std::string prometheus() const;
};

}  // namespace broach
