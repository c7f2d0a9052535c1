// Who gets a worker's signals, and who ends a worker that cannot act.
#include <linux/sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <fstream>

#include "tests/specializer/compile_support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"

namespace {

using namespace broach;
using namespace broach::specializer;
using namespace broach::test;

/// A child of this process under a number of its choice, in a group of its own; -1 where the system
/// does not allow that.
pid_t start_bystander(pid_t number) {
  std::uint64_t words[11] = {};  // struct clone_args of the first release that has set_tid.
  words[4] = SIGCHLD;            // exit_signal
  words[8] = reinterpret_cast<std::uint64_t>(&number);  // set_tid
  words[9] = 1;                                         // set_tid_size
  const auto pid = static_cast<pid_t>(::syscall(SYS_clone3, words, 80));
  if (pid == 0) {
    for (;;) ::pause();
  }
  if (pid > 0) ::setpgid(pid, pid);
  return pid;
}

/// The letter that the kernel gives a process's state; '-' for a number that no process has.
char state_of(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string number;
  std::string name;
  std::string state;
  return stat >> number >> name >> state ? state[0] : '-';
}

}  // namespace

TEST_CASE("a process that got a dead worker's number is left alone",
          "[specializer][compile][multiprocess]") {
  pid_t bystander = -1;
  {
    Compilers compilers(compilers_options());
    if (const auto identity = compilers.identity(host()); !identity) {
      BROACH_SKIP(identity.error().message);
    }
    const auto workers = worker_pids();
    REQUIRE(workers.size() == 1);
    ::kill(workers[0], SIGKILL);
    // As an engine does that reaps whichever child ended.
    while (::waitpid(workers[0], nullptr, 0) < 0 && errno == EINTR) {
    }
    bystander = start_bystander(workers[0]);
    if (bystander < 0) BROACH_SKIP("this system lets nobody choose a process number");
    REQUIRE(bystander == workers[0]);
    SECTION("when the compilers are closed") {}
    SECTION("when the next compile finds the worker gone") {
      CHECK(compilers.compile(tiny_plan(host())));
    }
  }
  int status = 0;
  CHECK(::waitpid(bystander, &status, WNOHANG) == 0);  // It runs, and nobody reaped it either.
  CHECK(::kill(bystander, SIGKILL) == 0);
  CHECK(::waitpid(bystander, &status, 0) == bystander);
}

TEST_CASE("a stopped worker ends with its parent and leaves nothing",
          "[specializer][compile][multiprocess]") {
  // Orphans come to this process, as they come to the first process of a container: the kernel then
  // sees no orphaned group that it would wake up by itself.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  TempDir scratch;
  const pid_t child = ::fork();
  if (child == 0) {
    auto options = compilers_options();
    options.scratch = {scratch.path()};
    Compilers compilers(options);
    const bool found = static_cast<bool>(compilers.identity(host()));
    const pid_t worker = found ? worker_pids().at(0) : 0;
    if (::write(ends[1], &worker, sizeof worker) != sizeof worker) ::_exit(1);
    for (;;) ::pause();
  }
  pid_t worker = 0;
  REQUIRE(::read(ends[0], &worker, sizeof worker) == sizeof worker);
  ::close(ends[0]);
  ::close(ends[1]);
  if (worker != 0) {
    ::kill(worker, SIGSTOP);
    wait_until([&] { return state_of(worker) == 'T'; });
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  if (worker == 0) BROACH_SKIP("no host compiler");
  // It is this process's child by now. A worker that stays stopped is told from one that ends late.
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  int status = 0;
  pid_t ended = 0;
  while (ended == 0 && std::chrono::steady_clock::now() < patience) {
    ended = ::waitpid(worker, &status, WNOHANG);
    std::this_thread::yield();
  }
  CHECK(ended == worker);
  if (ended != worker) ::kill(worker, SIGKILL);
  CHECK(std::filesystem::is_empty(scratch.path()));
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}
