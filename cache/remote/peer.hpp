#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "cache/remote/breaker.hpp"
#include "cache/remote/lease_board.hpp"
#include "cache/remote/remote.hpp"
#include "cache/reporter.hpp"

namespace broach::cache::remote {

/// A remote behind its breaker: faults are counted, told once a cause, and look like a remote that
/// has nothing. No call here outlasts its patience.
///
/// Threads: any.
class Peer {
 public:
  struct Terms {
    Patience read;   ///< On a launch's path.
    Patience write;  ///< Behind everyone's back.
    Breaker::Settings breaker;
  };

  Peer(std::unique_ptr<Remote> remote, const Terms& terms, Reporter& reporter)
      : remote_(std::move(remote)), terms_(terms), reporter_(reporter), breaker_(terms.breaker) {}

  std::optional<std::string> get(const KeyRecord& key);
  bool has(const KeyRecord& key);
  bool put(const KeyRecord& key, std::string_view value, const std::stop_token& stop);

  bool has_leases() const noexcept { return remote_->leases() != nullptr; }

  /// Absent when the remote cannot be asked: then there is no lease to wait for.
  std::optional<LeaseBoard::Answer> take(const Key& key, std::string_view text,
                                         std::chrono::milliseconds time);
  std::optional<bool> renew(const Key& key, std::string_view token, std::string_view text,
                            std::chrono::milliseconds time);
  std::optional<bool> release(const Key& key, std::string_view token);

  /// Asks for a key that nobody has, past the breaker, and says how long the answer took.
  ///
  /// Errors:  as Remote.
  Result<std::chrono::microseconds> probe();

  Breaker::State breaker() const { return breaker_.state(); }
  std::string last_fault() const;
  const std::string& name() const noexcept { return remote_->name(); }

 private:
  /// Runs an exchange if the breaker lets it begin; its fault is counted as `remote_failed`.
  template <class Value, class Exchange>
  std::optional<Value> guarded(const Patience& patience, const std::stop_token& stop,
                               Exchange exchange);
  void note_fault(const Error& error, Breaker::Change change);

  std::unique_ptr<Remote> remote_;
  const Terms terms_;
  Reporter& reporter_;
  Breaker breaker_;
  mutable std::mutex mutex_;
  std::string last_fault_;
};

}  // namespace broach::cache::remote
