#include "runtime/background.hpp"

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

namespace broach::runtime {

struct BackgroundQueue::State {
  explicit State(std::uint32_t most_threads) : most(most_threads) {}

  const std::uint32_t most;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> waiting;
  std::list<std::thread> threads;  ///< In their loops.
  std::list<std::thread> ended;    ///< Out of them, to be joined.
  bool stopping = false;

  /// Does one piece of work without the lock.
  void do_next(std::unique_lock<std::mutex>& lock) {
    std::function<void()> work = std::move(waiting.front());
    waiting.pop_front();
    lock.unlock();
    try {
      work();
    } catch (...) {
      // Nobody waits for it, so nobody can be told.
    }
    work = nullptr;  // What it holds goes without the lock, too.
    lock.lock();
  }

  void run(std::list<std::thread>::iterator self) {
    std::unique_lock lock(mutex);
    while (!waiting.empty() && !stopping) do_next(lock);
    ended.splice(ended.end(), threads, self);
    changed.notify_all();
  }

  /// Starts a thread where there is work for one more; false when none could be started.
  bool start_thread() noexcept {
    if (threads.size() >= most || waiting.empty()) return true;
    std::list<std::thread> one;
    try {
      one.emplace_back();
      const auto self = one.begin();
      *self = std::thread([this, self] { run(self); });
    } catch (...) {
      return false;
    }
    // It waits for the lock before it looks for itself.
    threads.splice(threads.end(), one);
    return true;
  }
};

BackgroundQueue::BackgroundQueue(std::uint32_t most)
    : most_(most != 0 ? most : std::max(2U, std::thread::hardware_concurrency())),
      state_(std::make_unique<State>(most_)),
      owner_(getpid()) {}

BackgroundQueue::~BackgroundQueue() {
  if (owner_ != getpid()) {
    (void)state_.release();  // As in state().
    return;
  }
  std::unique_lock lock(state_->mutex);
  state_->stopping = true;
  state_->changed.wait(lock, [this] { return state_->threads.empty(); });
  lock.unlock();
  for (std::thread& thread : state_->ended) thread.join();
}

// A forked child has a copy of the parent's lock, which may be held, and of its threads, which are
// not there: it leaks both and starts afresh.
BackgroundQueue::State& BackgroundQueue::state() {
  if (owner_ != getpid()) {
    auto fresh = std::make_unique<State>(most_);
    (void)state_.release();
    state_ = std::move(fresh);
    owner_ = getpid();
  }
  return *state_;
}

void BackgroundQueue::post(std::function<void()> work) noexcept try {
  State& mine = state();
  std::list<std::thread> ended;
  {
    const std::lock_guard lock(mine.mutex);
    mine.waiting.push_back(std::move(work));
    ended.swap(mine.ended);
    mine.start_thread();
  }
  for (std::thread& thread : ended) thread.join();  // They have left their loops.
} catch (...) {
}

void BackgroundQueue::drain() {
  State& mine = state();
  std::unique_lock lock(mine.mutex);
  while (!mine.waiting.empty() || !mine.threads.empty()) {
    const bool nobody_works = mine.threads.empty() && !mine.start_thread();
    if (nobody_works) {
      mine.do_next(lock);
    } else {
      mine.changed.wait(lock);
    }
  }
}

}  // namespace broach::runtime
