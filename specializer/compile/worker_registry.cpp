#include "specializer/compile/worker_registry.hpp"

#include <unistd.h>

#include <algorithm>

#include "specializer/compile/worker_process.hpp"

namespace broach::specializer {

WorkerRegistry::WorkerRegistry() : owner_(::getpid()) {}

bool WorkerRegistry::add(const WorkerProcess* worker) {
  const std::lock_guard lock(mutex_);
  if (owner_ != ::getpid()) {
    owner_ = ::getpid();
    workers_.clear();
  }
  if (!ended_) workers_.push_back(worker);
  return !ended_;
}

void WorkerRegistry::remove(const WorkerProcess* worker) noexcept {
  const std::lock_guard lock(mutex_);
  workers_.erase(std::remove(workers_.begin(), workers_.end(), worker), workers_.end());
}

void WorkerRegistry::end_all() noexcept {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  if (owner_ != ::getpid()) return;
  for (const WorkerProcess* worker : workers_) worker->interrupt();
}

}  // namespace broach::specializer
