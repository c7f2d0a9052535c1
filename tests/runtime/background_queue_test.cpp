#include "runtime/background.hpp"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <stdexcept>
#include <string>

#include "tests/support/catch.hpp"

namespace {

using broach::runtime::BackgroundQueue;

/// Counts those who came, and lets them wait for each other.
class Meeting {
 public:
  void come() {
    std::unique_lock lock(mutex_);
    ++came_;
    changed_.notify_all();
  }
  void wait_for(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return came_ >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int came_ = 0;
};

/// The process's address space in bytes.
rlim_t mapped_bytes() {
  std::ifstream statm("/proc/self/statm");
  rlim_t pages = 0;
  statm >> pages;
  return pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE));
}

void bound_address_space(rlim_t bytes) {
  rlimit limit{};
  ::getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = bytes;
  ::setrlimit(RLIMIT_AS, &limit);
}

}  // namespace

TEST_CASE("pieces of background work run side by side", "[runtime][background]") {
  BackgroundQueue queue(3);
  Meeting meeting;
  // Each waits for all: one after the other they would wait for ever.
  for (int i = 0; i < 3; ++i) {
    queue.post([&] {
      meeting.come();
      meeting.wait_for(3);
    });
  }
  queue.drain();
  SUCCEED("all three met");
}

TEST_CASE("no more pieces of work run at a time than were allowed", "[runtime][background]") {
  BackgroundQueue queue(2);
  std::atomic<int> now = 0;
  std::atomic<int> most = 0;
  for (int i = 0; i < 40; ++i) {
    queue.post([&] {
      const int here = ++now;
      for (int seen = most; here > seen && !most.compare_exchange_weak(seen, here);) {
      }
      --now;
    });
  }
  queue.drain();
  CHECK(most >= 1);
  CHECK(most <= 2);
}

TEST_CASE("work that throws stops neither the queue nor the program", "[runtime][background]") {
  BackgroundQueue queue(1);
  bool done = false;
  queue.post([] { throw std::runtime_error("no"); });
  queue.post([&] { done = true; });
  queue.drain();
  CHECK(done);
}

TEST_CASE("a queue that ends drops what has not begun", "[runtime][background]") {
  Meeting begun;
  Meeting go_on;
  std::atomic<int> ran = 0;
  {
    BackgroundQueue queue(1);
    queue.post([&] {
      begun.come();
      go_on.wait_for(1);
      ++ran;
    });
    begun.wait_for(1);
    for (int i = 0; i < 5; ++i) queue.post([&] { ++ran; });
    go_on.come();
    // It may have begun another by the time that the queue ends, but not lost the first.
  }
  CHECK(ran >= 1);
}

TEST_CASE("a thread that cannot be started costs nothing: the next post starts it, and drain works",
          "[runtime][background]") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  BROACH_SKIP("sanitizers map more than the address space that this test leaves");
#endif
  const pid_t child = ::fork();
  if (child == 0) {
    BackgroundQueue queue(2);
    std::atomic<int> ran = 0;
    const pid_t own_thread = ::gettid();
    std::atomic<bool> elsewhere = false;
    const auto work = [&] {
      ++ran;
      if (::gettid() != own_thread) elsewhere = true;
    };
    bound_address_space(mapped_bytes() + (rlim_t{1} << 20));  // No room for a stack.
    queue.post(work);
    if (ran != 0) ::_exit(1);
    bound_address_space(RLIM_INFINITY);
    queue.post(work);
    queue.drain();
    if (ran != 2 || !elsewhere) ::_exit(2);
    elsewhere = false;
    bound_address_space(mapped_bytes() + (rlim_t{1} << 20));
    queue.post(work);
    queue.drain();
    // Stacks of threads that ended are used again, so it may have run on either.
    ::_exit(ran == 3 ? 0 : 3);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}
