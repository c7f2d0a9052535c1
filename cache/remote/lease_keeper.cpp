#include "cache/remote/lease_keeper.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <random>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "cache/file.hpp"
#include "cache/remote/printable.hpp"

namespace broach::cache::remote {
namespace {

std::string random_token() {
  std::random_device device;  // Not guessed by chance; nobody is kept out by it.
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", device(), device(), device(), device());
}

// One word: the note's parts are set apart by spaces.
std::string word_of(std::string_view text) {
  std::string word(text.substr(0, 64));
  std::replace_if(
      word.begin(), word.end(), [](unsigned char c) { return c <= 0x20 || c == 0x7f; }, '_');
  return word.empty() ? "-" : word;
}

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "-";
  return word_of(name.data());
}

}  // namespace

LeaseNote LeaseNote::own(std::string_view stage) {
  return {random_token(), host_name(), getpid(), now_unix_ms(), word_of(stage)};
}

std::string to_text(const LeaseNote& note) {
  return fmt::format("{} {} {} {} {}", note.token, note.host, note.pid, note.since_unix_ms,
                     note.stage);
}

std::optional<LeaseNote> parse_lease_note(const std::string& text) {
  // Others could have written it, and people are shown it.
  constexpr std::size_t kLongest = 512;
  if (text.size() > kLongest || !is_printable(text)) return std::nullopt;
  std::istringstream in(text);
  LeaseNote note;
  if (!(in >> note.token >> note.host >> note.pid >> note.since_unix_ms >> note.stage)) {
    return std::nullopt;
  }
  return note;
}

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

void LeaseKeeper::hold(const Key& key, LeaseNote note) {
  reporter_.count("lease_taken");
  {
    const std::lock_guard lock(mutex_);
    held_.insert_or_assign(key, Held{std::move(note), Clock::now() + terms_.time / 3});
    if (!worker_.joinable()) {
      worker_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
    }
  }
  changed_.notify_all();
}

void LeaseKeeper::stage(const Key& key, std::string_view name) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = held_.find(key);
    if (found == held_.end()) return;
    found->second.note.stage = word_of(name);
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
    const Key key = due->first;
    Held held = due->second;
    // Asked again after a third of the time whatever comes of it now.
    due->second.renew_at = Clock::now() + terms_.time / 3;
    if (held.wish != Wish::kKeep) held_.erase(due);
    lock.unlock();
    serve(key, held);
    lock.lock();
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
