#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>

namespace broach::runtime {

/// Work that nobody waits for, done side by side on threads that live while there is some.
///
/// A child forked meanwhile has none of its parent's work.
///
/// Threads: any may post and drain.
/// Owns:    its threads. Destruction finishes the work in hand and drops the rest.
class BackgroundQueue {
 public:
  /// Units:   `most` pieces of work at a time; 0 takes the processor's threads, two at least.
  explicit BackgroundQueue(std::uint32_t most = 0);
  ~BackgroundQueue();
  BackgroundQueue(const BackgroundQueue&) = delete;
  BackgroundQueue& operator=(const BackgroundQueue&) = delete;

  /// Takes work that may wait: without memory for it, it is dropped; where no thread can be
  /// started, it waits for the next post, or for drain. What it throws is dropped.
  void post(std::function<void()> work) noexcept;

  /// Waits until nothing is left to do; where no thread can be started, does it itself.
  void drain();

 private:
  struct State;
  State& state();

  std::uint32_t most_;
  std::unique_ptr<State> state_;
  pid_t owner_;
};

}  // namespace broach::runtime
