#include "cache/remote/breaker.hpp"

#include <algorithm>
#include <utility>

namespace broach::cache::remote {

Breaker::Attempt::Attempt(Attempt&& other) noexcept
    : breaker_(std::exchange(other.breaker_, nullptr)) {}

Breaker::Attempt::~Attempt() {
  if (breaker_ != nullptr) (void)breaker_->fail();
}

Breaker::Change Breaker::Attempt::succeeded() {
  return std::exchange(breaker_, nullptr)->succeed();
}

Breaker::Change Breaker::Attempt::failed() { return std::exchange(breaker_, nullptr)->fail(); }

Breaker::Breaker(const Settings& settings, Now now)
    : settings_(settings), now_(std::move(now)), pause_(settings.first_pause) {}

std::optional<Breaker::Attempt> Breaker::begin() {
  const std::lock_guard lock(mutex_);
  if (mode_ == Mode::kProbing) return std::nullopt;
  if (mode_ == Mode::kOpen) {
    if (now_() < probe_at_) return std::nullopt;
    mode_ = Mode::kProbing;
  }
  return std::optional<Attempt>(std::in_place, *this);
}

// An exchange that began before the breaker opened proves that the peer answers, too.
Breaker::Change Breaker::succeed() {
  const std::lock_guard lock(mutex_);
  const bool was_closed = mode_ == Mode::kClosed;
  mode_ = Mode::kClosed;
  faults_ = 0;
  pause_ = settings_.first_pause;
  return was_closed ? Change::kNone : Change::kClosed;
}

Breaker::Change Breaker::fail() {
  const std::lock_guard lock(mutex_);
  ++faults_;
  if (mode_ == Mode::kOpen) return Change::kNone;  // It began before the breaker opened.
  if (mode_ == Mode::kClosed && faults_ < settings_.faults) return Change::kNone;
  const bool probed = std::exchange(mode_, Mode::kOpen) == Mode::kProbing;
  if (probed) pause_ = std::min(pause_ * 2, settings_.longest_pause);
  probe_at_ = now_() + pause_;
  return probed ? Change::kNone : Change::kOpened;
}

Breaker::State Breaker::state() const {
  const std::lock_guard lock(mutex_);
  State state{mode_, faults_, std::chrono::milliseconds{0}};
  if (mode_ == Mode::kOpen) {
    state.probe_in = std::max(std::chrono::ceil<std::chrono::milliseconds>(probe_at_ - now_()),
                              std::chrono::milliseconds{0});
  }
  return state;
}

}  // namespace broach::cache::remote
