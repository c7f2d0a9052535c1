#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

namespace broach::cache::remote {

/// Keeps a process from asking a remote that does not answer, again and again.
///
/// Closed, every exchange may begin. After a few faults in a row it opens, and none may; when its
/// pause is over, one exchange probes: its success closes the breaker, its failure opens it for
/// twice the time.
///
/// Threads: any.
class Breaker {
 public:
  using Clock = std::chrono::steady_clock;
  using Now = std::function<Clock::time_point()>;
  enum class Mode : std::uint8_t { kClosed, kOpen, kProbing };

  struct Settings {
    unsigned faults = 3;  ///< In a row, until it opens.
    std::chrono::milliseconds first_pause{1'000};
    std::chrono::milliseconds longest_pause{60'000};
  };

  struct State {
    Mode mode = Mode::kClosed;
    unsigned faults = 0;                    ///< In a row.
    std::chrono::milliseconds probe_in{0};  ///< Open: until the next probe may begin.
  };

  /// What the end of an exchange did to the breaker.
  enum class Change : std::uint8_t { kNone, kOpened, kClosed };

  /// One exchange that was allowed to begin. Left without a word, it counts as failed.
  class Attempt {
   public:
    explicit Attempt(Breaker& breaker) noexcept : breaker_(&breaker) {}
    ~Attempt();
    Attempt(Attempt&& other) noexcept;
    Attempt& operator=(Attempt&&) = delete;

    Change succeeded();
    Change failed();

   private:
    Breaker* breaker_;
  };

  explicit Breaker(const Settings& settings, Now now = Clock::now);

  /// Absent while the breaker is open, or another exchange probes.
  std::optional<Attempt> begin();

  State state() const;

 private:
  Change succeed();
  Change fail();

  const Settings settings_;
  const Now now_;
  mutable std::mutex mutex_;
  Mode mode_ = Mode::kClosed;
  unsigned faults_ = 0;
  std::chrono::milliseconds pause_;
  Clock::time_point probe_at_{};
};

}  // namespace broach::cache::remote
