#include "tools/contract/harness/in_parallel.hpp"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

namespace broach::contract {

std::uint32_t thread_count(std::uint32_t asked) noexcept {
  return asked > 0 ? asked : std::max(1U, std::thread::hardware_concurrency());
}

void in_parallel(std::size_t count, std::uint32_t threads,
                 const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  const auto take = [&] {
    for (std::size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::jthread> others;
  const std::size_t wanted = std::min<std::size_t>(thread_count(threads), count);
  try {
    for (std::size_t i = 1; i < wanted; ++i) others.emplace_back(take);
  } catch (const std::system_error&) {
    // Fewer threads, or the caller's alone, do the same work.
  }
  take();
}

}  // namespace broach::contract
