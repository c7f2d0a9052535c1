#include "cache/remote/peer.hpp"

#include <utility>

#include <fmt/core.h>

#include "cache/remote/sigpipe.hpp"

namespace broach::cache::remote {

template <class Value, class Exchange>
std::optional<Value> Peer::guarded(const Patience& patience, const std::stop_token& stop,
                                   Exchange exchange) {
  auto attempt = breaker_.begin();
  if (!attempt) {
    reporter_.count("remote_skipped");
    return std::nullopt;
  }
  const NoSigpipe guard;
  Deadline deadline(patience, stop);
  Result<Value> done = exchange(deadline);
  if (!done) {
    note_fault(done.error(), attempt->failed());
    return std::nullopt;
  }
  if (attempt->succeeded() == Breaker::Change::kClosed) reporter_.count("remote_breaker_closed");
  return std::move(*done);
}

void Peer::note_fault(const Error& error, Breaker::Change change) {
  {
    const std::lock_guard lock(mutex_);
    last_fault_ = error.message;
  }
  reporter_.fault("remote_failed", error, "what it has counts as a miss");
  if (change != Breaker::Change::kOpened) return;
  reporter_.count("remote_breaker_opened");
  reporter_.tell_once("breaker " + name(),
                      fmt::format("{} failed {} times in a row and is left alone for a while",
                                  name(), terms_.breaker.faults));
}

std::optional<std::string> Peer::get(const KeyRecord& key) {
  auto found = guarded<std::optional<std::string>>(
      terms_.read, {}, [&](Deadline& deadline) { return remote_->get(key, deadline); });
  if (!found) return std::nullopt;
  if (!*found) reporter_.count("remote_miss");
  return std::move(*found);
}

bool Peer::has(const KeyRecord& key) {
  return guarded<bool>(terms_.read, {},
                       [&](Deadline& deadline) { return remote_->has(key, deadline); })
      .value_or(false);
}

bool Peer::put(const KeyRecord& key, std::string_view value, const std::stop_token& stop) {
  return guarded<bool>(terms_.write, stop,
                       [&](Deadline& deadline) -> Result<bool> {
                         if (auto stored = remote_->put(key, value, deadline); !stored) {
                           return stored.error();
                         }
                         return true;
                       })
      .value_or(false);
}

std::optional<LeaseBoard::Answer> Peer::take(const Key& key, std::string_view text,
                                             std::chrono::milliseconds time) {
  return guarded<LeaseBoard::Answer>(terms_.read, {}, [&](Deadline& deadline) {
    return remote_->leases()->take(key, text, time, deadline);
  });
}

std::optional<bool> Peer::renew(const Key& key, std::string_view token, std::string_view text,
                                std::chrono::milliseconds time) {
  return guarded<bool>(terms_.read, {}, [&](Deadline& deadline) {
    return remote_->leases()->renew(key, token, text, time, deadline);
  });
}

std::optional<bool> Peer::release(const Key& key, std::string_view token) {
  return guarded<bool>(terms_.read, {}, [&](Deadline& deadline) {
    return remote_->leases()->release(key, token, deadline);
  });
}

Result<std::chrono::microseconds> Peer::probe() {
  const KeyRecord nobodys = KeyBuilder().field("family", "probe").finish();
  const NoSigpipe guard;
  Deadline deadline(terms_.read);
  const auto start = Deadline::Clock::now();
  const auto has = remote_->has(nobodys, deadline);
  if (!has) return has.error();
  return std::chrono::duration_cast<std::chrono::microseconds>(Deadline::Clock::now() - start);
}

std::string Peer::last_fault() const {
  const std::lock_guard lock(mutex_);
  return last_fault_;
}

}  // namespace broach::cache::remote
