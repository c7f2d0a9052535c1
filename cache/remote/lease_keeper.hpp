#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <stop_token>
#include <string_view>
#include <thread>

#include "cache/key.hpp"
#include "cache/remote/lease_note.hpp"
#include "cache/remote/peer.hpp"
#include "cache/reporter.hpp"

namespace broach::cache::remote {

/// Renews the leases that this process holds, and gives them up, on a thread of its own: whoever
/// makes a key never waits for the board.
///
/// Threads: any.
class LeaseKeeper {
 public:
  struct Terms {
    std::chrono::milliseconds time{6'000};        ///< A dead holder's lease ends after it.
    std::chrono::milliseconds not_stored{2'000};  ///< How long a holder's "not stored" stands.
  };

  LeaseKeeper(Peer& board, const Terms& terms, Reporter& reporter)
      : board_(board), terms_(terms), reporter_(reporter) {}

  /// Gives up every lease that is still held.
  ~LeaseKeeper();

  const Terms& terms() const noexcept { return terms_; }

  /// Keeps a lease that was just taken.
  void hold(const Key& key, LeaseNote note);

  /// Tells those who wait how far the work is.
  void stage(const Key& key, std::string_view name);

  /// The work is done and can be found, or will not be found.
  enum class Outcome : std::uint8_t { kStored, kNotStored };
  void release(const Key& key, Outcome outcome);

 private:
  using Clock = std::chrono::steady_clock;
  enum class Wish : std::uint8_t { kKeep, kRelease, kLeaveNote };
  struct Held {
    LeaseNote note;
    Clock::time_point renew_at;
    Wish wish = Wish::kKeep;
  };

  void start_worker() noexcept;
  void work(const std::stop_token& stop);
  void serve(const Key& key, Held& held);
  std::map<Key, Held>::iterator first_due(Clock::time_point now);
  Clock::time_point next_due() const;

  Peer& board_;
  const Terms terms_;
  Reporter& reporter_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::map<Key, Held> held_;
  std::jthread worker_;  ///< Started by the first lease.
};

}  // namespace broach::cache::remote
