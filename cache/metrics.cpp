#include "cache/metrics.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

namespace broach::cache {
namespace {

constexpr std::array<TimingName, kTimings> kNames{{
    {"look_up", "memory"},
    {"look_up", "user"},
    {"look_up", "read_only"},
    {"look_up", "remote"},
    {"look_up", "miss"},
    {"look_up", "remote_miss"},
    {"wait", "thread"},
    {"wait", "process"},
    {"wait", "fleet"},
    {"compile", "done"},
    {"compile", "rejected"},
    {"compile", "timed_out"},
    {"compile", "died"},
    {"compile", "unavailable"},
    {"publish", "stored"},
    {"publish", "not_stored"},
    {"load", "done"},
    {"load", "refused"},
}};

}  // namespace

TimingName name_of(Timing timing) noexcept { return kNames[static_cast<std::size_t>(timing)]; }

Timing compile_timing(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::kCompileFailed:
      return Timing::kCompileRejected;
    case ErrorCode::kTimedOut:
      return Timing::kCompileTimedOut;
    case ErrorCode::kCompilerDied:
      return Timing::kCompileDied;
    default:
      return Timing::kCompileUnavailable;
  }
}

std::size_t bucket_of(std::chrono::nanoseconds took) noexcept {
  if (took.count() <= 0) return 0;
  // Rounded up, so that a bucket's bound belongs to it.
  const std::uint64_t microseconds = (static_cast<std::uint64_t>(took.count()) + 999) / 1000;
  const auto bucket = static_cast<std::size_t>(std::bit_width(microseconds - 1));
  return std::min(bucket, kDurationBuckets - 1);
}

std::uint64_t Durations::count() const noexcept {
  return std::accumulate(buckets.begin(), buckets.end(), std::uint64_t{0});
}

void Metrics::record(Timing timing, std::chrono::nanoseconds took) noexcept {
  Histogram& histogram = histograms_[static_cast<std::size_t>(timing)];
  histogram.buckets[bucket_of(took)].fetch_add(1, std::memory_order_relaxed);
  const auto ns = static_cast<std::uint64_t>(std::max<std::int64_t>(took.count(), 0));
  histogram.sum_ns.fetch_add(ns, std::memory_order_relaxed);
}

Durations Metrics::read(Timing timing) const noexcept {
  const Histogram& histogram = histograms_[static_cast<std::size_t>(timing)];
  Durations reading;
  for (std::size_t i = 0; i < kDurationBuckets; ++i) {
    reading.buckets[i] = histogram.buckets[i].load(std::memory_order_relaxed);
  }
  reading.sum_ns = histogram.sum_ns.load(std::memory_order_relaxed);
  return reading;
}

}  // namespace broach::cache
