#include "specializer/compile/worker_pool.hpp"

#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>

namespace broach::specializer {

namespace {

// Workers kept for later; more may compile at a time.
constexpr std::uint32_t kMostIdle = 256;

}  // namespace

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

// A place that goes back unless it became a lease, however the call ends.
class WorkerPool::Place {
 public:
  explicit Place(WorkerPool& pool) : pool_(&pool) {}
  ~Place() {
    if (pool_ != nullptr) pool_->free_place();
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  WorkerPool* become_lease() noexcept { return std::exchange(pool_, nullptr); }

 private:
  WorkerPool* pool_;
};

Result<WorkerPool::Lease> WorkerPool::acquire() {
  std::uint64_t generation = 0;
  {
    std::unique_lock lock(mutex_);
    forget_if_forked();
    // Counted here: a warm look-up never gets this far and has no time for it.
    if (most_ == 0) most_ = std::max(1U, std::thread::hardware_concurrency());
    // So that giving one back, which may not fail, never allocates.
    idle_.reserve(std::min(most_, kMostIdle));
    freed_.wait(lock, [this] { return places_taken_ < most_; });
    ++places_taken_;
    generation = generation_;
  }
  Place place(*this);
  for (Worker last = last_idle(); last.process != nullptr; last = last_idle()) {
    if (!last.process->hung_up()) return Lease(place.become_lease(), std::move(last));
  }
  auto started = start_();
  if (!started) return std::move(started).error();
  started->generation = generation;
  return Lease(place.become_lease(), std::move(*started));
}

// The one used last has the most of the compiler in its caches.
Worker WorkerPool::last_idle() {
  Worker last;
  const std::lock_guard lock(mutex_);
  if (!idle_.empty()) {
    last = std::move(idle_.back());
    idle_.pop_back();
  }
  return last;
}

void WorkerPool::free_place() noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (places_taken_ > 0) --places_taken_;
  }
  freed_.notify_one();
}

void WorkerPool::give_back(Worker worker) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (worker.process->alive() && worker.generation == generation_ &&
        idle_.size() < idle_.capacity()) {
      idle_.push_back(std::move(worker));
    }
  }
  free_place();
}

void WorkerPool::retire() {
  std::vector<Worker> ended;
  const std::lock_guard lock(mutex_);
  ++generation_;
  ended.swap(idle_);
}

}  // namespace broach::specializer
