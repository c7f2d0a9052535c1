#pragma once

#include <sys/types.h>

#include <mutex>
#include <vector>

namespace broach::specializer {

class WorkerProcess;

/// The workers that there are, so that all can be ended while other threads wait for their answers.
///
/// A child forked meanwhile has none of them.
///
/// Threads: any.
class WorkerRegistry {
 public:
  WorkerRegistry();

  /// False once they were all ended: there are to be no more.
  bool add(const WorkerProcess* worker);
  void remove(const WorkerProcess* worker) noexcept;

  /// Ends them all, now and from now on.
  void end_all() noexcept;

 private:
  std::mutex mutex_;
  std::vector<const WorkerProcess*> workers_;
  bool ended_ = false;
  pid_t owner_;
};

}  // namespace broach::specializer
