#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "broach/result.hpp"
#include "specializer/compile/protocol.hpp"
#include "specializer/compile/worker_process.hpp"

namespace broach::specializer {

/// A worker and the compiler that it opened.
struct Worker {
  std::unique_ptr<WorkerProcess> process;
  rtc::Opened opened;
  std::uint64_t generation = 0;  ///< Of the pool, when it was started.
};

/// Workers of one compiler: started on demand, used again, at most `most` at a time (0: cores).
///
/// Threads: any.
/// Owns:    idle workers; a leased one comes back through its lease.
class WorkerPool {
 public:
  using Start = std::function<Result<Worker>()>;

  /// A worker for the time of one compile; one that is still alive goes back to the pool.
  class Lease {
   public:
    Lease(WorkerPool* pool, Worker worker) : pool_(pool), worker_(std::move(worker)) {}
    ~Lease() {
      if (pool_ != nullptr) pool_->give_back(std::move(worker_));
    }
    Lease(Lease&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)), worker_(std::move(other.worker_)) {}
    Lease& operator=(Lease&&) = delete;

    Worker* operator->() noexcept { return &worker_; }

   private:
    WorkerPool* pool_;
    Worker worker_;
  };

  WorkerPool(std::uint32_t most, Start start);
  ~WorkerPool();

  /// Waits for a free place, then takes an idle worker or starts one.
  ///
  /// Errors:  those of `start`.
  Result<Lease> acquire();

  /// Ends the idle workers, and the leased ones when they come back.
  void retire();

 private:
  class Place;
  void give_back(Worker worker) noexcept;
  void free_place() noexcept;
  Worker last_idle();
  void forget_if_forked();

  std::uint32_t most_;
  const Start start_;
  std::mutex mutex_;
  std::condition_variable freed_;
  std::vector<Worker> idle_;
  std::uint32_t places_taken_ = 0;
  std::uint64_t generation_ = 0;
  pid_t owner_;
};

}  // namespace broach::specializer
