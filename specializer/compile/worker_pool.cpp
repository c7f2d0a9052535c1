#include "specializer/compile/worker_pool.hpp"

#include <unistd.h>

#include <algorithm>
#include <thread>

namespace broach::specializer {

WorkerPool::WorkerPool(std::uint32_t most, Start start)
    : most_(most), start_(std::move(start)), owner_(::getpid()) {}

WorkerPool::~WorkerPool() { forget_if_forked(); }

// A forked child has copies of the sockets but none of the workers: it may neither talk to them
// nor end them.
void WorkerPool::forget_if_forked() {
  if (::getpid() == owner_) return;
  owner_ = ::getpid();
  for (Worker& worker : idle_) worker.process->abandon();
  idle_.clear();
  places_taken_ = 0;
}

Result<WorkerPool::Lease> WorkerPool::acquire() {
  Worker worker;
  std::vector<Worker> ended;
  std::uint64_t generation = 0;
  {
    std::unique_lock lock(mutex_);
    forget_if_forked();
    // Counted here: a warm look-up never gets this far and has no time for it.
    if (most_ == 0) most_ = std::max(1U, std::thread::hardware_concurrency());
    freed_.wait(lock, [this] { return places_taken_ < most_; });
    ++places_taken_;
    generation = generation_;
    while (!idle_.empty() && worker.process == nullptr) {
      // The one used last has the most of the compiler in its caches.
      Worker last = std::move(idle_.back());
      idle_.pop_back();
      (last.process->hung_up() ? ended.emplace_back() : worker) = std::move(last);
    }
  }
  ended.clear();
  if (worker.process == nullptr) {
    auto started = start_();
    const std::lock_guard lock(mutex_);
    if (!started) {
      --places_taken_;
      freed_.notify_one();
      return std::move(started).error();
    }
    worker = std::move(*started);
    worker.generation = generation;
  }
  return Lease(this, std::move(worker));
}

void WorkerPool::give_back(Worker worker) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (places_taken_ > 0) --places_taken_;
    if (worker.process->alive() && worker.generation == generation_) {
      idle_.push_back(std::move(worker));
    }
  }
  freed_.notify_one();
}

void WorkerPool::retire() {
  std::vector<Worker> ended;
  const std::lock_guard lock(mutex_);
  ++generation_;
  ended.swap(idle_);
}

}  // namespace broach::specializer
