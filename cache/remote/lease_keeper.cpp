#include "cache/remote/lease_keeper.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace broach::cache::remote {

LeaseKeeper::~LeaseKeeper() {
  {
    const std::lock_guard lock(mutex_);
    for (auto& [key, held] : held_) {
      if (held.wish == Wish::kKeep) held.wish = Wish::kLeaveNote;
    }
  }
  if (worker_.joinable()) {
    worker_.request_stop();
    worker_.join();
  }
}

// Without a thread a lease ends by its own time, and the next one that is held tries again.
void LeaseKeeper::start_worker() noexcept try {
  if (worker_.joinable()) return;
  worker_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
} catch (const std::exception&) {
}

void LeaseKeeper::hold(const Key& key, LeaseNote note) {
  reporter_.count("lease_taken");
  {
    const std::lock_guard lock(mutex_);
    held_.insert_or_assign(key, Held{std::move(note), Clock::now() + terms_.time / 3});
    start_worker();
  }
  changed_.notify_all();
}

void LeaseKeeper::stage(const Key& key, std::string_view name) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = held_.find(key);
    if (found == held_.end()) return;
    found->second.note.stage = note_word(name);
    found->second.renew_at = Clock::now();
  }
  changed_.notify_all();
}

void LeaseKeeper::release(const Key& key, Outcome outcome) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = held_.find(key);
    if (found == held_.end()) return;
    found->second.wish = outcome == Outcome::kStored ? Wish::kRelease : Wish::kLeaveNote;
    found->second.renew_at = Clock::now();
  }
  changed_.notify_all();
}

std::map<Key, LeaseKeeper::Held>::iterator LeaseKeeper::first_due(Clock::time_point now) {
  return std::find_if(held_.begin(), held_.end(), [&](const auto& row) {
    return row.second.wish != Wish::kKeep || row.second.renew_at <= now;
  });
}

LeaseKeeper::Clock::time_point LeaseKeeper::next_due() const {
  Clock::time_point next = Clock::now() + terms_.time;
  for (const auto& [key, held] : held_) next = std::min(next, held.renew_at);
  return next;
}

// Each lease is served outside the lock, from a copy; what was wished for meanwhile comes next.
void LeaseKeeper::work(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto due = first_due(Clock::now());
    if (due == held_.end()) {
      if (stop.stop_requested()) return;
      changed_.wait_until(lock, stop, next_due(),
                          [this] { return first_due(Clock::now()) != held_.end(); });
      continue;
    }
    // Asked again after a third of the time whatever comes of it now.
    due->second.renew_at = Clock::now() + terms_.time / 3;
    try {
      const Key key = due->first;
      Held held = due->second;
      if (held.wish != Wish::kKeep) held_.erase(due);
      lock.unlock();
      serve(key, held);
    } catch (const std::exception&) {
      // No memory for it: as good as a board that does not answer. What was to be given up ends by
      // its own time.
      if (lock.owns_lock() && due->second.wish != Wish::kKeep) held_.erase(due);
    }
    if (!lock.owns_lock()) lock.lock();
  }
}

void LeaseKeeper::serve(const Key& key, Held& held) {
  if (held.wish == Wish::kRelease) {
    (void)board_.release(key, held.note.token);
    return;
  }
  if (held.wish == Wish::kLeaveNote) {
    held.note.stage = kNotStoredStage;
    (void)board_.renew(key, held.note.token, to_text(held.note), terms_.not_stored);
    return;
  }
  const auto renewed = board_.renew(key, held.note.token, to_text(held.note), terms_.time);
  if (!renewed || *renewed) return;  // A board that does not answer is asked again.
  reporter_.count("lease_lost");
  const std::lock_guard lock(mutex_);
  const auto found = held_.find(key);
  if (found != held_.end() && found->second.note.token == held.note.token) held_.erase(found);
}

}  // namespace broach::cache::remote
