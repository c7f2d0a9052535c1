#include "runtime/host/fiber.hpp"

#include <sys/mman.h>

#include <cstddef>
#include <cstring>
#include <span>

#include "tests/support/catch.hpp"

using broach::runtime::host::Fiber;
using broach::runtime::host::StackSet;

namespace {

struct Visit {
  Fiber* caller = nullptr;
  Fiber* fiber = nullptr;
  int value = 0;
};

// Leaves a frame with an array behind, as a kernel's thread does.
void visit(void* argument) {
  auto* const job = static_cast<Visit*>(argument);
  volatile int frame[8] = {};
  for (int i = 0; i < 8; ++i) frame[i] = i;
  job->value = frame[7];
  Fiber::switch_to(*job->fiber, *job->caller);
}

}  // namespace

TEST_CASE("a fiber runs on its own stack and hands back", "[runtime][fiber]") {
  auto stacks = StackSet::create(2, 64 * 1024);
  REQUIRE(stacks.ok());
  Fiber caller;
  Fiber fiber;
  Visit job{&caller, &fiber};
  fiber.start(stacks->stack(1), visit, &job);
  Fiber::switch_to(caller, fiber);
  CHECK(job.value == 7);
}

TEST_CASE("memory that held fibers' stacks can be mapped and written again", "[runtime][fiber]") {
  constexpr std::size_t kBytes = 64 * 1024;
  std::span<std::byte> stack;
  {
    auto stacks = StackSet::create(1, kBytes);
    REQUIRE(stacks.ok());
    stack = stacks->stack(0);
    Fiber caller;
    Fiber fiber;
    Visit job{&caller, &fiber};
    fiber.start(stack, visit, &job);
    Fiber::switch_to(caller, fiber);
  }
  void* again = mmap(stack.data(), stack.size(), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  REQUIRE(again == stack.data());
  std::memset(again, 0x5A, stack.size());  // A red zone left marked ends the program here.
  CHECK(stack.front() == std::byte{0x5A});
  CHECK(stack.back() == std::byte{0x5A});
  CHECK(munmap(again, stack.size()) == 0);
}
