#include "tools/contract/harness/run.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>

namespace broach::contract {
namespace {

constexpr std::int32_t kUntimedLaunches = 2;  // Caches and clocks settle.

}  // namespace

Result<void> time_launches(RunReport& report, runtime::Device& device, std::int32_t launches,
                           const std::function<Result<void>()>& launch) {
  if (launches <= 0) return {};
  std::vector<double> times;
  for (std::int32_t i = -kUntimedLaunches; i < launches; ++i) {
    const auto start = std::chrono::steady_clock::now();
    if (auto launched = launch(); !launched) return launched;
    if (auto done = device.synchronize(nullptr); !done) return done;
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    if (i >= 0) times.push_back(took.count());
  }
  std::sort(times.begin(), times.end());
  const std::size_t count = times.size();
  report.median_us = times[count / 2];
  report.spread_us = times[count * 3 / 4] - times[count / 4];
  report.timed_launches = launches;
  return {};
}

Result<void> check_between(std::string_view option, std::int64_t value, std::int64_t least,
                           std::int64_t most) {
  if (value >= least && value <= most) return {};
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("{} is {}; it must be {} to {}", option, value, least, most), ""};
}

}  // namespace broach::contract
