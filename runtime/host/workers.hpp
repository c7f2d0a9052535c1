#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "broach/result.hpp"
#include "runtime/host/block.hpp"

namespace broach::runtime::host {

/// OS threads that run the blocks of a grid side by side.
///
/// Each computes in the default floating-point environment whatever the caller's is: a caller that
/// flushes subnormals or rounds upward gets the same bits.
///
/// Threads: any; one launch runs at a time.
/// Owns:    its threads, started by the first launch.
class Workers {
 public:
  /// Units:   `count` threads; 0 takes the processor's.
  explicit Workers(std::uint32_t count);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// Runs every block of a grid and returns when all have ended.
  ///
  /// Where no thread can be started, the caller's runs them.
  ///
  /// Errors:  the first block's that failed; blocks that were not started yet are then left out.
  ///          kOutOfMemory.
  Result<void> run(const BlockLaunch& launch);

 private:
  void start_threads() noexcept;
  void work();
  Result<void> run_here(const BlockLaunch& launch);
  void run_blocks(BlockRunner& runner, const BlockLaunch& launch) noexcept;

  std::uint32_t count_;
  std::mutex launch_mutex_;  ///< Held for a whole launch.
  std::mutex mutex_;         ///< Guards everything below.
  std::condition_variable posted_;
  std::condition_variable done_;
  std::vector<std::thread> threads_;
  const BlockLaunch* launch_ = nullptr;
  std::uint64_t serial_ = 0;  ///< Counts launches, so that a worker takes each one once.
  std::uint64_t blocks_ = 0;
  std::uint64_t next_block_ = 0;
  std::uint32_t busy_ = 0;
  Result<void> outcome_;
  bool stopping_ = false;
};

}  // namespace broach::runtime::host
