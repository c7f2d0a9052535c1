#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "broach/result.hpp"
#include "kernel_src/host/abi.h"
#include "runtime/host/fiber.hpp"

namespace broach::runtime::host {

/// A launch as every block of it sees it.
struct BlockLaunch {
  std::string_view function;
  BroachHostEntry entry = nullptr;
  const void* params = nullptr;
  std::uint32_t grid[3] = {1, 1, 1};
  std::uint32_t block_threads = 0;
  std::uint32_t static_shared_bytes = 0;
  std::uint32_t dynamic_shared_bytes = 0;
};

/// Runs the blocks of launches, one after another, each block's threads as fibers.
///
/// A thread runs until it waits; then another that can go on does. Threads of one warp follow each
/// other, so that a warp's stacks stay in the nearest cache. Blocks must not wait for each other,
/// and a thread must not spin on another's write.
///
/// Threads: one OS thread.
class BlockRunner {
 public:
  BlockRunner();
  ~BlockRunner();
  BlockRunner(const BlockRunner&) = delete;
  BlockRunner& operator=(const BlockRunner&) = delete;

  /// Runs one block. Shared memory starts as bytes of 0xff: NaN in every float type.
  ///
  /// Errors:  kDriver when threads wait for each other for ever or the threads of a group come to
  ///          different exchanges; kInvalidArgument when the kernel's own check of its arguments
  ///          fails: the message names function, block and threads. kOutOfMemory.
  Result<void> run(const BlockLaunch& launch, const std::uint32_t block[3]);

 private:
  /// Threads that meet: a warp, a warpgroup, a block.
  struct Group {
    BroachHostCombine combine = nullptr;
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    std::vector<void*> lanes;
    std::vector<std::uint32_t> waiting;  ///< In the order in which they came.
  };
  /// Every group of one size.
  struct Groups {
    std::uint32_t group_threads = 0;
    std::vector<Group> groups;
  };
  struct FiberThread;
  /// What a thread of the block failed with, noted on its own stack: nothing is allocated there,
  /// since an exception could not leave it.
  struct Failure {
    enum class Kind : std::uint8_t { kNone, kBadGroup, kOtherExchange, kRefused, kNoMemory };
    Kind kind = Kind::kNone;
    const FiberThread* thread = nullptr;
    const char* reason = nullptr;  ///< The kernel's own, with a value.
    long long value = 0;
    std::uint32_t group_threads = 0;
    std::uint32_t other_thread = 0;
  };
  struct FreeShared {
    void operator()(void* memory) const noexcept;
  };
  struct SharedMemory {
    std::unique_ptr<void, FreeShared> bytes;
    std::uint32_t size = 0;
  };

  static const BroachHostCalls kCalls;
  static void meet(BroachHostThread* thread, unsigned group_threads, void* lane,
                   BroachHostCombine combine);
  static void fail(BroachHostThread* thread, const char* reason, long long value);
  static void run_thread(void* fiber_thread);

  Result<void> prepare(const BlockLaunch& launch);
  static bool resize(SharedMemory& memory, std::uint32_t bytes);
  Group* find_group(const FiberThread& thread, std::uint32_t group_threads) noexcept;
  bool add_groups(std::uint32_t group_threads) noexcept;
  void leave(FiberThread& thread);
  void drop(FiberThread& thread, const Failure& failure);
  Error describe(const Failure& failure) const;
  std::string describe_deadlock() const;

  Fiber scheduler_;
  std::vector<StackSet> stacks_;
  std::vector<std::unique_ptr<FiberThread>> threads_;
  std::vector<std::uint32_t> ready_;  ///< The last one goes next.
  std::vector<Groups> groups_;
  SharedMemory static_shared_;
  SharedMemory dynamic_shared_;
  BlockLaunch launch_;
  std::uint32_t block_threads_ = 0;  ///< What groups_ was laid out for.
  std::uint32_t finished_ = 0;
  Failure failure_;
};

}  // namespace broach::runtime::host
