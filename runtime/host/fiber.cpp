#include "runtime/host/fiber.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <fmt/core.h>

#include <boost/context/detail/fcontext.hpp>
#include <cstdlib>
#include <string>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#define BROACH_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BROACH_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define BROACH_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define BROACH_TSAN 1
#endif
#endif
#ifdef BROACH_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef BROACH_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace broach::runtime::host {

namespace context = boost::context::detail;

Result<StackSet> StackSet::create(std::size_t count, std::size_t stack_bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  stack_bytes = (stack_bytes + page - 1) / page * page;
  const std::size_t bytes = count * (stack_bytes + page);
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (base == MAP_FAILED) {
    return Error{
        ErrorCode::kOutOfMemory,
        fmt::format("cannot map {} bytes of stacks for a block of {} threads", bytes, count),
        {}};
  }
  StackSet set(static_cast<std::byte*>(base), count, stack_bytes, page);
  for (std::size_t i = 0; i < count; ++i) {
    // A guard that cannot be set (the kernel's limit on mappings) costs the check, not the launch.
    static_cast<void>(mprotect(set.base_ + i * (stack_bytes + page), page, PROT_NONE));
  }
  return set;
}

StackSet::StackSet(std::byte* base, std::size_t count, std::size_t stack_bytes,
                   std::size_t guard_bytes)
    : base_(base), count_(count), stack_bytes_(stack_bytes), guard_bytes_(guard_bytes) {}

StackSet::StackSet(StackSet&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)),
      count_(other.count_),
      stack_bytes_(other.stack_bytes_),
      guard_bytes_(other.guard_bytes_) {}

StackSet::~StackSet() {
  if (base_ == nullptr) return;
  const std::size_t bytes = count_ * (stack_bytes_ + guard_bytes_);
#ifdef BROACH_ASAN
  // Fibers end where they stand, so their frames' red zones are still marked; whatever is mapped
  // here next must not inherit them.
  ASAN_UNPOISON_MEMORY_REGION(base_, bytes);
#endif
  munmap(base_, bytes);
}

std::span<std::byte> StackSet::stack(std::size_t index) const noexcept {
  return {base_ + index * (stack_bytes_ + guard_bytes_) + guard_bytes_, stack_bytes_};
}

Fiber::Fiber() {
#ifdef BROACH_TSAN
  tsan_fiber_ = __tsan_get_current_fiber();
#endif
}

Fiber::~Fiber() {
#ifdef BROACH_TSAN
  if (owns_tsan_fiber_) __tsan_destroy_fiber(tsan_fiber_);
#endif
}

namespace {

/// What a switch hands to the flow of control that it starts or resumes.
struct Arrival {
  void** left_context;                     ///< Takes where the one that left can be resumed.
  std::span<const std::byte>* left_stack;  ///< Takes its stack, where that is not known yet.
  Fiber* arriving;
};

void arrive(const context::transfer_t& from, [[maybe_unused]] void* fake_stack) {
  const auto* arrival = static_cast<const Arrival*>(from.data);
  *arrival->left_context = from.fctx;
#ifdef BROACH_ASAN
  const void* bottom = nullptr;
  std::size_t size = 0;
  __sanitizer_finish_switch_fiber(fake_stack, &bottom, &size);
  if (arrival->left_stack->empty()) {
    *arrival->left_stack = {static_cast<const std::byte*>(bottom), size};
  }
#endif
}

}  // namespace

struct Fiber::Entry {
  static void run(context::transfer_t from) {
    const Fiber* self = static_cast<const Arrival*>(from.data)->arriving;
    arrive(from, nullptr);
    self->body_(self->argument_);
    std::abort();  // A body never returns: there is nothing below it.
  }
};

void Fiber::start(std::span<std::byte> stack, Body body, void* argument) noexcept {
#ifdef BROACH_ASAN
  ASAN_UNPOISON_MEMORY_REGION(stack.data(), stack.size());
#endif
#ifdef BROACH_TSAN
  if (owns_tsan_fiber_) __tsan_destroy_fiber(tsan_fiber_);
  tsan_fiber_ = __tsan_create_fiber(0);
  owns_tsan_fiber_ = true;
#endif
  stack_ = stack;
  body_ = body;
  argument_ = argument;
  fake_stack_ = nullptr;
  context_ = context::make_fcontext(stack.data() + stack.size(), stack.size(), &Entry::run);
}

void Fiber::switch_to(Fiber& from, Fiber& to) noexcept {
  Arrival arrival{&from.context_, &from.stack_, &to};
#ifdef BROACH_ASAN
  __sanitizer_start_switch_fiber(&from.fake_stack_, to.stack_.data(), to.stack_.size());
#endif
#ifdef BROACH_TSAN
  __tsan_switch_to_fiber(to.tsan_fiber_, 0);
#endif
  const context::transfer_t back = context::jump_fcontext(to.context_, &arrival);
  arrive(back, from.fake_stack_);
}

}  // namespace broach::runtime::host
