#include "cache/turn.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include <fmt/core.h>

#include "cache/file.hpp"
#include "cache/holder_note.hpp"

namespace broach::cache {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view kFolder = "locks";
constexpr std::string_view kNotStored = "not stored";

// The longest a waiter sleeps: it bounds how late it sees what it waits for.
constexpr std::chrono::microseconds kFirstNap{500};
constexpr std::chrono::microseconds kLongestNap{10'000};
constexpr std::chrono::milliseconds kLookEvery{100};

std::uint64_t own_pid_namespace() {
  struct stat status {};
  return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

Holder to_holder(const HolderNote& note) {
  const auto waited = std::max<std::int64_t>(now_unix_ms() - note.since_unix_ms, 0);
  return {note.pid, note.stage, static_cast<double>(waited) / 1000.0};
}

// A holder on this machine that is stopped, or a number that no process has any more: then a child
// of the holder inherited the lock.
bool stands_still(const HolderNote& note) {
  static const std::uint64_t own = own_pid_namespace();
  if (own == 0 || note.pid_namespace != own) return false;
  std::ifstream stat_file(fmt::format("/proc/{}/stat", note.pid));
  std::string text;
  if (!std::getline(stat_file, text)) return true;
  // The state follows the program's name, which is in parentheses and may hold any.
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= text.size()) return false;
  const char state = text[name_end + 2];
  return state == 'T' || state == 't' || state == 'Z' || state == 'X';
}

/// Looks at a holder from time to time.
class Watch {
 public:
  Watch(const Key& key, Reporter& reporter, const Turn::Patience& patience)
      : key_(key), reporter_(reporter), patience_(patience) {}

  /// Says whether to stop waiting for the holder.
  bool gives_up(int folder) {
    const Clock::time_point now = Clock::now();
    if (now < next_look_) return false;
    next_look_ = now + kLookEvery;
    if (now - started_ > patience_.whole) return true;
    const auto text = FileLock::held_text(folder, key_.hex());
    if (!text) return false;
    if (text != last_text_) {
      last_text_ = text;
      changed_ = now;
    }
    const auto note = parse_holder_note(*text);
    if (!note) return now - changed_ > patience_.stage;
    if (!stands_still(*note)) still_since_.reset();
    if (stands_still(*note) && !still_since_) still_since_ = now;
    if (now - started_ > patience_.notice) tell(*note);
    const bool stopped = still_since_ && now - *still_since_ > patience_.stopped;
    return stopped || now - changed_ > patience_.stage;
  }

 private:
  void tell(const HolderNote& note) {
    const Holder holder = to_holder(note);
    reporter_.tell_once("waiting_" + key_.hex(),
                        fmt::format("waiting for process {}, which has worked on {} for {:.0f} s "
                                    "(stage: {})",
                                    holder.pid, key_.hex(), holder.seconds, holder.stage));
  }

  const Key& key_;
  Reporter& reporter_;
  const Turn::Patience& patience_;
  const Clock::time_point started_ = Clock::now();
  Clock::time_point next_look_{};
  Clock::time_point changed_ = Clock::now();
  std::optional<Clock::time_point> still_since_;
  std::optional<std::string> last_text_;
};

}  // namespace

Turn Turn::take(Directory& directory, const Key& key, Reporter& reporter,
                const std::function<bool()>& found, const Patience& patience) {
  Turn turn;
  turn.since_unix_ms_ = now_unix_ms();
  auto folder = directory.folder(kFolder, IfMissing::kCreate);
  if (!folder) {
    reporter.count("lock_unavailable");
    return turn;
  }
  turn.folder_ = std::move(*folder);
  Watch watch(key, reporter, patience);
  auto nap = kFirstNap;
  for (;; turn.waited_ = true) {
    // The object first: of many that wait for it, none then needs the lock, let alone makes its
    // file.
    if (turn.waited_ && (turn.served_ = found())) return turn;
    auto lock = FileLock::try_take(turn.folder_->get(), key.hex());
    if (!lock) {
      reporter.count("lock_unavailable");
      return turn;
    }
    if (lock->has_value()) {
      turn.lock_.emplace(std::move(**lock));
      // Its last holder may have stored the object.
      turn.served_ = found();
      if (turn.served_) return turn;
      if (turn.waited_ && turn.last_was_not_stored()) {
        reporter.count("lock_not_needed");
        turn.lock_->keep_file();
        turn.lock_.reset();
        return turn;
      }
      if (turn.waited_) reporter.count("lock_taken_over");
      turn.since_unix_ms_ = now_unix_ms();
      turn.stage("start");
      return turn;
    }
    if (!turn.waited_) reporter.count("lock_waited");
    if (watch.gives_up(turn.folder_->get())) {
      reporter.count("holder_stalled");
      return turn;
    }
    std::this_thread::sleep_for(nap);
    nap = std::min(nap * 2, kLongestNap);
  }
}

void Turn::stage(std::string_view name) {
  if (!lock_) return;
  static const std::uint64_t own = own_pid_namespace();
  std::string words(name.substr(0, 64));
  std::replace(words.begin(), words.end(), '\n', ' ');
  lock_->write(to_text({getpid(), own, since_unix_ms_, words}));
}

void Turn::not_stored() {
  if (!lock_) return;
  stage(kNotStored);
  lock_->keep_file();
}

bool Turn::last_was_not_stored() const {
  const auto note = parse_holder_note(lock_->text());
  return note && note->stage.starts_with(kNotStored);
}

std::optional<Holder> holder_of(Directory& directory, const Key& key) {
  const auto folder = directory.folder(kFolder, IfMissing::kFail);
  if (!folder) return std::nullopt;
  const auto text = FileLock::held_text((*folder)->get(), key.hex());
  const auto note = text ? parse_holder_note(*text) : std::nullopt;
  if (!note) return std::nullopt;
  return to_holder(*note);
}

}  // namespace broach::cache
