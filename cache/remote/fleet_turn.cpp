#include "cache/remote/fleet_turn.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <thread>

#include <fmt/core.h>

#include "cache/file.hpp"

namespace broach::cache::remote {
namespace {

using Clock = std::chrono::steady_clock;

// Each question is an exchange with the board; the last nap bounds how late the answer is seen.
constexpr std::chrono::milliseconds kFirstNap{5};
constexpr std::chrono::milliseconds kLongestNap{50};

/// Follows the holders of one lease.
class Watch {
 public:
  Watch(const Key& key, Reporter& reporter, const LeasePatience& patience)
      : key_(key), reporter_(reporter), patience_(patience) {}

  /// Takes what the board says; false when the holder is not worth waiting for.
  bool goes_on(const std::string& text) {
    const Clock::time_point now = Clock::now();
    if (text != text_) changed_ = now;
    text_ = text;
    const auto note = parse_lease_note(text);
    if (note && note->stage == kNotStoredStage) return false;
    if (note && now - started_ > patience_.notice) tell(*note);
    if (now - changed_ < patience_.stage && now - started_ < patience_.whole) return true;
    reporter_.count("lease_stalled");
    return false;
  }

  std::string words() const {
    const auto note = parse_lease_note(text_);
    return note ? fmt::format("wait {}/{} {}", note->host, note->pid, note->stage) : "wait";
  }

 private:
  void tell(const LeaseNote& note) {
    reporter_.tell_once(
        "lease_" + key_.hex(),
        fmt::format("waiting for process {} on {}, which has worked on {} for {} s (stage: {})",
                    note.pid, note.host, key_.hex(),
                    std::max<std::int64_t>(now_unix_ms() - note.since_unix_ms, 0) / 1000,
                    note.stage));
  }

  const Key& key_;
  Reporter& reporter_;
  const LeasePatience& patience_;
  const Clock::time_point started_ = Clock::now();
  Clock::time_point changed_ = started_;
  std::string text_;
};

}  // namespace

FleetTurn take_fleet_turn(const KeyRecord& key, Peer& board, LeaseKeeper& keeper,
                          Reporter& reporter, const LeasePatience& patience,
                          const std::function<bool()>& look,
                          const std::function<void(std::string_view)>& stage) {
  const LeaseNote own = LeaseNote::own("start");
  const std::string text = to_text(own);
  Watch watch(key.key, reporter, patience);
  bool looked = false;
  auto nap = kFirstNap;
  for (bool waited = false;; waited = true) {
    const auto answer = board.take(key.key, text, keeper.terms().time);
    if (!answer) {
      reporter.count("lease_unavailable");
      return FleetTurn::kAlone;
    }
    if (answer->taken) {
      keeper.hold(key.key, own);
      // Whoever had it before may have stored the object since it was looked for.
      if (!look()) return FleetTurn::kMine;
      keeper.release(key.key, LeaseKeeper::Outcome::kStored);
      return FleetTurn::kServed;
    }
    if (!waited) reporter.count("lease_waited");
    if (!watch.goes_on(answer->held_by)) return FleetTurn::kAlone;
    stage(watch.words());
    // A value that is there and was turned down is not fetched again and again.
    if (!looked && board.has(key)) {
      looked = true;
      if (look()) return FleetTurn::kServed;
    }
    std::this_thread::sleep_for(nap);
    nap = std::min(nap * 2, kLongestNap);
  }
}

}  // namespace broach::cache::remote
