#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "broach/result.hpp"
#include "specializer/compile/channel.hpp"
#include "specializer/compile/group_leader.hpp"
#include "specializer/compile/scratch.hpp"
#include "specializer/compile/worker_registry.hpp"

namespace broach::specializer {

/// How a worker is started.
struct WorkerLaunch {
  std::vector<std::string> command;      ///< The program's absolute path first.
  std::vector<std::string> environment;  ///< The whole of it: "NAME=value".
  /// A private directory is made in one of these; without any it gets none.
  std::vector<std::filesystem::path> scratch_parents;
  WorkerRegistry* registry = nullptr;  ///< Where it is known while it lives; may be null.
};

/// One broach-rtc process with a private directory for its temporary files, where it needs one.
///
/// It leads a process group, inherits no descriptor but its socket and its log, and ends when
/// this object does or when this process dies, however that happens.
///
/// Threads: one at a time.
/// Owns:    the process, its socket, its log and its directory.
class WorkerProcess {
 public:
  /// Errors:  kCompilerDied when the program cannot be started; kIo for the machine's troubles.
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

  bool alive() const noexcept { return leader_.has_value(); }
  bool hung_up() const;  ///< Whether an idle worker ended or spoke out of turn.

  /// Has the worker end at once, from another thread: who waits for its answer gets kIo.
  void interrupt() const noexcept;

  const std::filesystem::path& scratch() const noexcept { return scratch_.path(); }

  /// Lets go of a worker that belongs to the process this one was forked from.
  void abandon() noexcept { leader_.reset(), scratch_.abandon(); }

 private:
  WorkerProcess(rtc::Channel channel, rtc::UniqueFd log, GroupLeader leader, Scratch scratch);
  Result<void> enter(WorkerRegistry* registry);
  /// Whether a worker that hung up is given time to end by its own signal, so that it shows.
  enum class Patience : std::uint8_t { kNone, kLastWords };
  Ending end(Patience patience);  ///< Kills the group, reaps; says how it ended.
  Error died();                   ///< The error of a worker that hung up.
  Error failed(Error error);      ///< The error of an exchange that did not end.
  std::string log_tail() const;

  rtc::Channel channel_;
  rtc::UniqueFd log_;
  std::optional<GroupLeader> leader_;
  Scratch scratch_;
  WorkerRegistry* registry_ = nullptr;
  mutable std::atomic<bool> interrupted_ = false;
};

}  // namespace broach::specializer
