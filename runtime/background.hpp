#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>

namespace broach::runtime {

/// Work that nobody waits for, done one after the other on a thread that lives while there is some.
///
/// A child forked meanwhile has none of its parent's work.
///
/// Threads: any may post and drain.
/// Owns:    its thread. Destruction finishes the work in hand and drops the rest.
class BackgroundQueue {
 public:
  BackgroundQueue();
  ~BackgroundQueue();
  BackgroundQueue(const BackgroundQueue&) = delete;
  BackgroundQueue& operator=(const BackgroundQueue&) = delete;

  /// `work` must not throw.
  void post(std::function<void()> work);

  /// Waits until nothing is left to do.
  void drain();

 private:
  struct State;
  State& state();

  std::unique_ptr<State> state_;
  pid_t owner_;
};

}  // namespace broach::runtime
