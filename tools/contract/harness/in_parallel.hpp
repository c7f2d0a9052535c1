#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace broach::contract {

/// `asked`, or a thread a core where it is 0.
std::uint32_t thread_count(std::uint32_t asked) noexcept;

/// Does `work(0)` to `work(count - 1)` on `threads` threads, or on as many as can be started, the
/// caller's among them, each as soon as a thread is free, and returns when all are done.
///
/// Threads: `work` is called from several at once. It does not throw.
void in_parallel(std::size_t count, std::uint32_t threads,
                 const std::function<void(std::size_t)>& work);

}  // namespace broach::contract
