#include "tests/runtime/failing_malloc.hpp"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>

// glibc's own, under the names that stand behind the ones that are replaced here.
extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* memory, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);
}

namespace {

std::atomic<std::uint64_t> seen{0};
std::atomic<std::uint64_t> first_failing{0};  // 0: none fails.
std::atomic<bool> all_after{false};

bool fails() noexcept {
  const std::uint64_t mine = ++seen;
  const std::uint64_t first = first_failing;
  if (first == 0 || (all_after ? mine < first : mine != first)) return false;
  errno = ENOMEM;
  return true;
}

}  // namespace

namespace broach::test {

void fail_allocations(Failing which, std::uint64_t n) noexcept {
  first_failing = 0;
  seen = 0;
  all_after = which == Failing::kFromNth;
  first_failing = which == Failing::kNothing ? 0 : n;
}

std::uint64_t allocations_seen() noexcept { return seen; }

}  // namespace broach::test

extern "C" {

void* malloc(std::size_t bytes) noexcept { return fails() ? nullptr : __libc_malloc(bytes); }

void* calloc(std::size_t count, std::size_t bytes) noexcept {
  return fails() ? nullptr : __libc_calloc(count, bytes);
}

void* realloc(void* memory, std::size_t bytes) noexcept {
  return fails() ? nullptr : __libc_realloc(memory, bytes);
}

void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
  return fails() ? nullptr : __libc_memalign(alignment, bytes);
}

void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  return memalign(alignment, bytes);
}

int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) noexcept {
  void* found = memalign(alignment, bytes);
  if (found == nullptr) return ENOMEM;
  *memory = found;
  return 0;
}
}
