#pragma once

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "broach/result.hpp"
#include "specializer/compile/channel.hpp"

namespace broach::specializer {

/// How a worker is started.
struct WorkerLaunch {
  std::vector<std::string> command;      ///< The program's absolute path first.
  std::vector<std::string> environment;  ///< The whole of it: "NAME=value".
  std::filesystem::path scratch_parent;  ///< A private directory is made in it.
};

/// One broach-rtc process with a private directory for its temporary files.
///
/// It leads a process group, inherits no descriptor but its socket and its log, and ends when
/// this object does or when this process dies, however that happens.
///
/// Threads: one at a time.
/// Owns:    the process, its socket, its log and its directory.
class WorkerProcess {
 public:
  /// Errors:  kCompilerDied when the program cannot be started; kIo for the rest.
  static Result<std::unique_ptr<WorkerProcess>> start(const WorkerLaunch& launch);
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  /// Sends a request and waits for its answer. After an error the worker is dead.
  ///
  /// Errors:  kTimedOut; kCompilerDied with the way it ended in the message and the end of its
  ///          log in the detail; kLimitExceeded for a request that does not fit, which it
  ///          survives.
  Result<rtc::Message> exchange(const rtc::Message& request, rtc::Deadline deadline);

  bool alive() const noexcept { return pid_ > 0; }
  bool hung_up() const;  ///< Whether an idle worker ended or spoke out of turn.
  pid_t pid() const noexcept { return pid_; }
  const std::filesystem::path& scratch() const noexcept { return scratch_; }

  /// Lets go of a worker that belongs to the process this one was forked from.
  void abandon() noexcept { pid_ = -1, scratch_.clear(); }

 private:
  WorkerProcess(rtc::Channel channel, rtc::UniqueFd log, pid_t pid, std::filesystem::path scratch);
  /// Whether a worker that hung up is given time to end by its own signal, so that it shows.
  enum class Patience : std::uint8_t { kNone, kLastWords };
  std::string end(Patience patience);  ///< Kills the group, reaps; says how it ended.
  std::string log_tail() const;

  rtc::Channel channel_;
  rtc::UniqueFd log_;
  rtc::UniqueFd pidfd_;
  pid_t pid_;
  std::filesystem::path scratch_;
};

}  // namespace broach::specializer
