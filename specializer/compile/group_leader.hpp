#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "specializer/compile/unique_fd.hpp"

namespace broach::specializer {

/// How a process ended.
struct Ending {
  std::string words;       ///< "ended by signal 9 (Killed)".
  bool by_itself = false;  ///< By its own status, or by a signal that a program's own fault raises.
};

/// A child process that leads a process group of its own.
///
/// It is held by a descriptor, never by its number alone: once a child is reaped, which an engine
/// may do behind our back (SIGCHLD ignored, a wait for any child), its number may be a stranger's.
///
/// Threads: one at a time.
/// Owns:    the descriptor; the process itself ends through `end`.
class GroupLeader {
 public:
  /// Takes a child that was started a moment ago.
  explicit GroupLeader(pid_t pid) noexcept;

  /// Whether there is a descriptor to hold it by, or the kernel has none to give (before 5.3).
  bool held() const noexcept { return pidfd_ || without_descriptors_; }

  pid_t pid() const noexcept { return pid_; }

  /// Whether it ended within a time.
  ///
  /// Units:   milliseconds.
  bool ended_within(int milliseconds) const noexcept;

  /// Kills the whole group, whether the leader still lives or not, and nobody else.
  void kill_group() noexcept;

  /// Kills the group, reaps the leader unless somebody did, and says how it ended. Waits for a
  /// bounded time only: a process that hangs in the kernel is left behind.
  Ending end();

 private:
  int signal(int number, unsigned flags) const noexcept;
  bool has_its_number() const noexcept;

  pid_t pid_;
  rtc::UniqueFd pidfd_;
  bool without_descriptors_ = false;
};

}  // namespace broach::specializer
