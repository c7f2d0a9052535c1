#include "runtime/host/block.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <utility>

namespace broach::runtime::host {
namespace {

// A kernel keeps in locals what a GPU keeps in registers, and sanitizers pad them.
constexpr std::size_t kStackBytes = 256 * 1024;
constexpr std::size_t kThreadsAStackSet = 128;
constexpr std::size_t kSharedAlignment = 128;

std::string words_of(const std::uint32_t (&block)[3]) {
  return fmt::format("({}, {}, {})", block[0], block[1], block[2]);
}

}  // namespace

struct BlockRunner::FiberThread {
  BroachHostThread abi{};  // First: meet() and fail() get its address.
  BlockRunner* runner = nullptr;
  std::span<std::byte> stack;
  Fiber fiber;
  std::uint32_t waits_in = 0;  ///< The size of the group it waits in; 0 when it does not.
  bool finished = true;
};

const BroachHostCalls BlockRunner::kCalls = {&BlockRunner::meet, &BlockRunner::fail};

void BlockRunner::FreeShared::operator()(void* memory) const noexcept { std::free(memory); }

BlockRunner::BlockRunner() = default;
BlockRunner::~BlockRunner() = default;

bool BlockRunner::resize(SharedMemory& memory, std::uint32_t bytes) {
  if (memory.size == bytes) return true;
  // Exactly the bytes asked for, so that AddressSanitizer sees an access past them.
  void* fresh = nullptr;
  if (bytes != 0 && posix_memalign(&fresh, kSharedAlignment, bytes) != 0) return false;
  memory.bytes.reset(fresh);
  memory.size = bytes;
  return true;
}

Result<void> BlockRunner::prepare(const BlockLaunch& launch) {
  launch_ = launch;
  while (threads_.size() < launch.block_threads) {
    if (threads_.size() % kThreadsAStackSet == 0) {
      auto set = StackSet::create(kThreadsAStackSet, kStackBytes);
      if (!set) return std::move(set).error();
      stacks_.push_back(std::move(set).value());
    }
    auto thread = std::make_unique<FiberThread>();
    thread->runner = this;
    thread->stack = stacks_.back().stack(threads_.size() % kThreadsAStackSet);
    thread->fiber.start(thread->stack, &BlockRunner::run_thread, thread.get());
    threads_.push_back(std::move(thread));
  }
  if (!resize(static_shared_, launch.static_shared_bytes) ||
      !resize(dynamic_shared_, launch.dynamic_shared_bytes)) {
    return Error{
        ErrorCode::kOutOfMemory,
        fmt::format("no memory for the shared memory of {}: {} + {} bytes", launch.function,
                    launch.static_shared_bytes, launch.dynamic_shared_bytes),
        {}};
  }
  ready_.reserve(threads_.size());  // So that threads that leave or meet never allocate.
  if (block_threads_ != launch.block_threads) {
    block_threads_ = launch.block_threads;
    groups_.clear();
  }
  return {};
}

Result<void> BlockRunner::run(const BlockLaunch& launch, const std::uint32_t block[3]) {
  if (auto ready = prepare(launch); !ready) return ready;
  if (static_shared_.size != 0) {
    std::memset(static_shared_.bytes.get(), 0xff, static_shared_.size);
  }
  if (dynamic_shared_.size != 0) {
    std::memset(dynamic_shared_.bytes.get(), 0xff, dynamic_shared_.size);
  }
  finished_ = 0;
  failure_ = {};
  ready_.clear();
  for (std::uint32_t i = launch.block_threads; i-- > 0;) {
    FiberThread& thread = *threads_[i];
    thread.abi = {&kCalls,
                  static_shared_.bytes.get(),
                  dynamic_shared_.bytes.get(),
                  i,
                  launch.block_threads,
                  {block[0], block[1], block[2]},
                  {launch.grid[0], launch.grid[1], launch.grid[2]},
                  launch.dynamic_shared_bytes};
    thread.waits_in = 0;
    thread.finished = false;
    ready_.push_back(i);
  }
  const std::uint32_t first = ready_.back();
  ready_.pop_back();
  Fiber::switch_to(scheduler_, threads_[first]->fiber);

  if (finished_ == launch.block_threads) return {};
  Error error = describe(failure_);
  for (std::uint32_t i = 0; i < launch.block_threads; ++i) {
    FiberThread& thread = *threads_[i];
    if (!thread.finished) thread.fiber.start(thread.stack, &BlockRunner::run_thread, &thread);
  }
  groups_.clear();
  return error;
}

void BlockRunner::run_thread(void* fiber_thread) {
  auto& thread = *static_cast<FiberThread*>(fiber_thread);
  BlockRunner& runner = *thread.runner;
  for (;;) {
    runner.launch_.entry(&thread.abi, runner.launch_.params);
    thread.finished = true;
    ++runner.finished_;
    runner.leave(thread);
  }
}

void BlockRunner::leave(FiberThread& thread) {
  if (ready_.empty()) {
    Fiber::switch_to(thread.fiber, scheduler_);
    return;
  }
  const std::uint32_t next = ready_.back();
  ready_.pop_back();
  Fiber::switch_to(thread.fiber, threads_[next]->fiber);
}

void BlockRunner::drop(FiberThread& thread, const Failure& failure) {
  failure_ = failure;
  failure_.thread = &thread;
  // No thread goes on: run() drops them all. Nothing on this stack may own anything by now.
  Fiber::switch_to(thread.fiber, scheduler_);
}

Error BlockRunner::describe(const Failure& failure) const {
  using Kind = Failure::Kind;
  if (failure.kind == Kind::kNone) return Error{ErrorCode::kDriver, describe_deadlock(), {}};
  const auto about = [&](ErrorCode code, const std::string& words) {
    const BroachHostThread& abi = failure.thread->abi;
    return Error{code,
                 fmt::format("{}, block {}, thread {}: {}", launch_.function, words_of(abi.block),
                             abi.thread, words),
                 {}};
  };
  switch (failure.kind) {
    case Kind::kBadGroup:
      return about(
          ErrorCode::kDriver,
          fmt::format("waits in a group of {} threads; a group is whole warps of 32 within "
                      "the block's {}",
                      failure.group_threads, block_threads_));
    case Kind::kOtherExchange:
      return about(
          ErrorCode::kDriver,
          fmt::format("comes to another exchange than thread {} of its group of {} waits in",
                      failure.other_thread, failure.group_threads));
    case Kind::kRefused:
      return about(ErrorCode::kInvalidArgument,
                   fmt::format("{}: {}", failure.reason, failure.value));
    case Kind::kNoMemory:
    case Kind::kNone:
      break;
  }
  return about(ErrorCode::kOutOfMemory,
               fmt::format("no memory for its group of {} threads", failure.group_threads));
}

BlockRunner::Group* BlockRunner::find_group(const FiberThread& thread,
                                            std::uint32_t group_threads) noexcept {
  for (Groups& sized : groups_) {
    if (sized.group_threads == group_threads) {
      return &sized.groups[thread.abi.thread / group_threads];
    }
  }
  return nullptr;
}

// Lays out every group of a size; false without memory.
bool BlockRunner::add_groups(std::uint32_t group_threads) noexcept try {
  Groups sized;
  sized.group_threads = group_threads;
  for (std::uint32_t first = 0; first < block_threads_; first += group_threads) {
    Group& group = sized.groups.emplace_back();
    group.first = first;
    group.count = std::min(group_threads, block_threads_ - first);
    group.lanes.resize(group.count);
    group.waiting.reserve(group.count);
  }
  groups_.push_back(std::move(sized));
  return true;
} catch (const std::exception&) {
  return false;
}

void BlockRunner::meet(BroachHostThread* abi, unsigned group_threads, void* lane,
                       BroachHostCombine combine) {
  auto& thread = *reinterpret_cast<FiberThread*>(abi);
  BlockRunner& runner = *thread.runner;
  Failure failure;
  failure.group_threads = group_threads;
  const bool whole_warps = group_threads % 32 == 0 && group_threads != 0;
  if (!whole_warps || group_threads > runner.block_threads_) {
    failure.kind = Failure::Kind::kBadGroup;
    runner.drop(thread, failure);
    return;
  }
  Group* group = runner.find_group(thread, group_threads);
  if (group == nullptr && runner.add_groups(group_threads)) {
    group = runner.find_group(thread, group_threads);
  }
  if (group == nullptr) {
    failure.kind = Failure::Kind::kNoMemory;
    runner.drop(thread, failure);
    return;
  }
  if (group->waiting.empty()) {
    group->combine = combine;
  } else if (group->combine != combine) {
    failure.kind = Failure::Kind::kOtherExchange;
    failure.other_thread = group->waiting.front();
    runner.drop(thread, failure);
    return;
  }
  group->lanes[thread.abi.thread - group->first] = lane;
  if (group->waiting.size() + 1 < group->count) {
    group->waiting.push_back(thread.abi.thread);
    thread.waits_in = group_threads;
    runner.leave(thread);
    return;
  }
  if (combine != nullptr) combine(group->lanes.data(), group->count);
  for (std::size_t i = group->waiting.size(); i-- > 0;) {
    runner.threads_[group->waiting[i]]->waits_in = 0;
    runner.ready_.push_back(group->waiting[i]);
  }
  group->waiting.clear();
}

void BlockRunner::fail(BroachHostThread* abi, const char* reason, long long value) {
  auto& thread = *reinterpret_cast<FiberThread*>(abi);
  BlockRunner& runner = *thread.runner;
  Failure failure;
  failure.kind = Failure::Kind::kRefused;
  failure.reason = reason;
  failure.value = value;
  runner.drop(thread, failure);
}

std::string BlockRunner::describe_deadlock() const {
  for (const Groups& sized : groups_) {
    for (const Group& group : sized.groups) {
      if (group.waiting.empty()) continue;
      std::string words = fmt::format(
          "{}, block {}: {} of {} threads from thread {} on wait for the others", launch_.function,
          words_of(threads_[0]->abi.block), group.waiting.size(), group.count, group.first);
      for (std::uint32_t i = group.first; i < group.first + group.count; ++i) {
        const FiberThread& other = *threads_[i];
        if (other.waits_in == sized.group_threads) continue;
        if (other.finished) return fmt::format("{}, but thread {} has ended", words, i);
        return fmt::format("{}, but thread {} waits in a group of {}", words, i, other.waits_in);
      }
      return words;
    }
  }
  return fmt::format("{}: threads neither end nor wait", launch_.function);
}

}  // namespace broach::runtime::host
