#pragma once

#include <algorithm>
#include <chrono>
#include <stop_token>
#include <utility>

namespace broach::cache::remote {

/// How long one exchange with a remote may take.
struct Patience {
  std::chrono::milliseconds idle{200};  ///< To the first byte, connecting included; then between.
  std::chrono::milliseconds whole{2'000};  ///< From the first to the last byte, and all before.
};

/// When an exchange is given up.
///
/// Threads: one, but for the stop that another may ask for.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Deadline(const Patience& patience, std::stop_token stop = {})
      : patience_(patience), stop_(std::move(stop)) {}

  /// Bytes moved: the idle time starts again.
  void progress() noexcept { moved_ = Clock::now(); }

  bool passed() const noexcept { return stopped() || left() <= std::chrono::milliseconds::zero(); }
  bool stopped() const noexcept { return stop_.stop_requested(); }

  /// How long to wait for the next event: short enough to see a stop.
  std::chrono::milliseconds nap() const noexcept {
    constexpr std::chrono::milliseconds kSeeStop{50};
    return std::clamp(left(), std::chrono::milliseconds{1}, kSeeStop);
  }

  std::chrono::milliseconds elapsed() const noexcept {
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start_);
  }

 private:
  std::chrono::milliseconds left() const noexcept {
    const Clock::time_point now = Clock::now();
    const auto idle = moved_ + patience_.idle - now;
    const auto whole = start_ + patience_.whole - now;
    return std::chrono::ceil<std::chrono::milliseconds>(std::min<Clock::duration>(idle, whole));
  }

  Patience patience_;
  std::stop_token stop_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point moved_ = start_;
};

}  // namespace broach::cache::remote
