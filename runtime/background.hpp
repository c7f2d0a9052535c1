#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace broach::runtime {

/// Work that nobody waits for, done one after the other on a thread that starts with the first.
///
/// Threads: any may post and drain.
/// Owns:    its thread. Destruction finishes the work in hand and drops the rest.
class BackgroundQueue {
 public:
  BackgroundQueue() = default;
  ~BackgroundQueue();
  BackgroundQueue(const BackgroundQueue&) = delete;
  BackgroundQueue& operator=(const BackgroundQueue&) = delete;

  /// `work` must not throw.
  void post(std::function<void()> work);

  /// Waits until nothing is left to do.
  void drain();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  bool busy_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace broach::runtime
