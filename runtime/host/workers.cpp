#include "runtime/host/workers.hpp"

#include <algorithm>
#include <cfenv>
#include <exception>
#include <utility>

namespace broach::runtime::host {

Workers::Workers(std::uint32_t count)
    : count_(count != 0 ? count : std::max(1u, std::thread::hardware_concurrency())) {}

Workers::~Workers() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  posted_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

// As many as can be had: fewer threads run the same blocks, and the next launch tries again.
void Workers::start_threads() noexcept try {
  threads_.reserve(count_);
  while (threads_.size() < count_) threads_.emplace_back(&Workers::work, this);
} catch (const std::exception&) {
}

// In the default floating-point environment, as on a thread of its own.
Result<void> Workers::run_here(const BlockLaunch& launch) {
  std::fenv_t callers;
  std::fegetenv(&callers);
  std::fesetenv(FE_DFL_ENV);
  {
    BlockRunner runner;
    run_blocks(runner, launch);
  }
  std::fesetenv(&callers);
  return std::exchange(outcome_, {});
}

Result<void> Workers::run(const BlockLaunch& launch) {
  const std::lock_guard launch_lock(launch_mutex_);
  start_threads();
  std::unique_lock lock(mutex_);
  launch_ = &launch;
  ++serial_;
  blocks_ = std::uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
  next_block_ = 0;
  outcome_ = {};
  if (threads_.empty()) {
    lock.unlock();
    return run_here(launch);
  }
  busy_ = static_cast<std::uint32_t>(threads_.size());
  posted_.notify_all();
  done_.wait(lock, [this] { return busy_ == 0; });
  launch_ = nullptr;
  return std::exchange(outcome_, {});
}

void Workers::work() {
  std::fesetenv(FE_DFL_ENV);  // Fibers take it over from the thread that starts them.
  BlockRunner runner;
  std::uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    posted_.wait(lock, [&] { return stopping_ || serial_ != seen; });
    if (stopping_) return;
    seen = serial_;
    const BlockLaunch& launch = *launch_;
    lock.unlock();
    run_blocks(runner, launch);
    lock.lock();
    if (--busy_ == 0) done_.notify_one();
  }
}

void Workers::run_blocks(BlockRunner& runner, const BlockLaunch& launch) noexcept {
  for (;;) {
    std::uint64_t at = 0;
    {
      const std::lock_guard lock(mutex_);
      if (!outcome_ || next_block_ == blocks_) return;
      at = next_block_++;
    }
    const std::uint32_t block[3] = {
        static_cast<std::uint32_t>(at % launch.grid[0]),
        static_cast<std::uint32_t>(at / launch.grid[0] % launch.grid[1]),
        static_cast<std::uint32_t>(at / launch.grid[0] / launch.grid[1])};
    Result<void> ran;
    try {
      ran = runner.run(launch, block);
    } catch (const std::exception&) {
      // Short enough to need no memory itself.
      ran = Error{ErrorCode::kOutOfMemory, "no host memory", {}};
    }
    if (ran) continue;
    const std::lock_guard lock(mutex_);
    if (outcome_) outcome_ = std::move(ran);
    return;
  }
}

}  // namespace broach::runtime::host
