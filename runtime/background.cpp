#include "runtime/background.hpp"

#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

namespace broach::runtime {

struct BackgroundQueue::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> waiting;
  bool running = false;  ///< The thread is in its loop.
  bool stopping = false;
  std::thread thread;

  void run() {
    std::unique_lock lock(mutex);
    while (!waiting.empty() && !stopping) {
      const std::function<void()> work = std::move(waiting.front());
      waiting.pop_front();
      lock.unlock();
      work();
      lock.lock();
    }
    running = false;
    changed.notify_all();
  }
};

BackgroundQueue::BackgroundQueue() : state_(std::make_unique<State>()), owner_(getpid()) {}

BackgroundQueue::~BackgroundQueue() {
  State& mine = state();
  {
    const std::lock_guard lock(mine.mutex);
    mine.stopping = true;
  }
  if (mine.thread.joinable()) mine.thread.join();
}

// A forked child has a copy of the parent's lock, which may be held, and of its thread, which is
// not there: it leaks both and starts afresh.
BackgroundQueue::State& BackgroundQueue::state() {
  if (owner_ != getpid()) {
    (void)state_.release();
    state_ = std::make_unique<State>();
    owner_ = getpid();
  }
  return *state_;
}

void BackgroundQueue::post(std::function<void()> work) {
  State& mine = state();
  const std::lock_guard lock(mine.mutex);
  mine.waiting.push_back(std::move(work));
  if (mine.running) return;
  if (mine.thread.joinable()) mine.thread.join();  // It has left its loop.
  mine.running = true;
  mine.thread = std::thread([&mine] { mine.run(); });
}

void BackgroundQueue::drain() {
  State& mine = state();
  std::unique_lock lock(mine.mutex);
  mine.changed.wait(lock, [&] { return mine.waiting.empty() && !mine.running; });
}

}  // namespace broach::runtime
