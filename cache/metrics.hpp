#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "broach/result.hpp"

namespace broach::cache {

/// Work that is timed, apart by the layer that answered or by how it ended.
enum class Timing : std::uint8_t {
  kLookUpMemory,
  kLookUpUser,
  kLookUpReadOnly,
  kLookUpRemote,
  kLookUpMiss,        ///< No layer on this machine has it.
  kLookUpRemoteMiss,  ///< No remote has it, or none answered in time.
  kWaitThread,        ///< For another thread that makes the same key.
  kWaitProcess,       ///< For another process that does.
  kWaitFleet,         ///< For another machine that did.
  kCompileDone,
  kCompileRejected,
  kCompileTimedOut,
  kCompileDied,
  kCompileUnavailable,  ///< No compiler, no memory, or no way to ask one.
  kPublishStored,
  kPublishNotStored,
  kLoadDone,
  kLoadRefused,
};
inline constexpr std::size_t kTimings = static_cast<std::size_t>(Timing::kLoadRefused) + 1;

/// The words of a timing: ("look_up", "memory"). Both are literals and end in a zero byte.
struct TimingName {
  std::string_view operation;
  std::string_view cause;
};
TimingName name_of(Timing timing) noexcept;

/// How a compile that returned this error ended.
Timing compile_timing(ErrorCode code) noexcept;

/// Buckets of a histogram: bucket i holds durations up to 2^i microseconds, the last one the rest.
inline constexpr std::size_t kDurationBuckets = 32;
std::size_t bucket_of(std::chrono::nanoseconds took) noexcept;

/// A histogram as it was at one moment.
struct Durations {
  std::array<std::uint64_t, kDurationBuckets> buckets{};
  std::uint64_t sum_ns = 0;

  std::uint64_t count() const noexcept;
};

/// How long things took in this process.
///
/// Recording adds to two counters and takes no lock. A reading while others record may have a
/// duration in its bucket and not yet in the sum.
///
/// Threads: any.
class Metrics {
 public:
  void record(Timing timing, std::chrono::nanoseconds took) noexcept;
  Durations read(Timing timing) const noexcept;

 private:
  struct Histogram {
    std::array<std::atomic<std::uint64_t>, kDurationBuckets> buckets{};
    std::atomic<std::uint64_t> sum_ns{0};
  };
  std::array<Histogram, kTimings> histograms_;
};

/// The time since it was made.
class Stopwatch {
 public:
  std::chrono::nanoseconds elapsed() const noexcept { return Clock::now() - start_; }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

}  // namespace broach::cache
