#include "specializer/compile/group_leader.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

namespace broach::specializer {
namespace {

// PIDFD_SIGNAL_PROCESS_GROUP of Linux 6.9: the group that the process led, however it is numbered.
constexpr unsigned kWholeGroup = 1U << 2;

// waitid's P_PIDFD, which older C libraries do not name.
constexpr auto kByDescriptor = static_cast<idtype_t>(3);

// A killed process is gone at once, unless it hangs in the kernel (a dead network drive).
constexpr int kReapMs = 2'000;

int wait_for(idtype_t kind, id_t id, siginfo_t& info, int options) {
  int result = 0;
  do {
    info = {};
    result = ::waitid(kind, id, &info, options);
  } while (result < 0 && errno == EINTR);
  return result;
}

// The signals that a program brings upon itself; others come from outside: an operator, the
// system's way out of memory.
bool is_own_fault(int signal) {
  constexpr std::array<int, 7> kFaults = {SIGABRT, SIGBUS, SIGFPE, SIGILL,
                                          SIGSEGV, SIGSYS, SIGTRAP};
  return std::find(kFaults.begin(), kFaults.end(), signal) != kFaults.end();
}

Ending ending_of(const siginfo_t& info) {
  if (info.si_code == CLD_EXITED) {
    return {"ended with status " + std::to_string(info.si_status), true};
  }
  return {"ended by signal " + std::to_string(info.si_status) + " (" + ::strsignal(info.si_status) +
              ")",
          is_own_fault(info.si_status)};
}

}  // namespace

GroupLeader::GroupLeader(pid_t pid) noexcept
    : pid_(pid), pidfd_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {
  without_descriptors_ = !pidfd_ && (errno == ENOSYS || errno == EPERM);
}

bool GroupLeader::ended_within(int milliseconds) const noexcept {
  if (!pidfd_) return !has_its_number();
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::milliseconds(milliseconds);
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
    pollfd entry{pidfd_.get(), POLLIN, 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(std::max<std::int64_t>(left, 0)));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

int GroupLeader::signal(int number, unsigned flags) const noexcept {
  return static_cast<int>(::syscall(SYS_pidfd_send_signal, pidfd_.get(), number, nullptr, flags));
}

// While nobody has reaped it, its number is its own, dead or alive.
bool GroupLeader::has_its_number() const noexcept {
  siginfo_t info;
  const int options = WEXITED | WNOHANG | WNOWAIT;
  if (pidfd_) return wait_for(kByDescriptor, static_cast<id_t>(pidfd_.get()), info, options) == 0;
  return wait_for(P_PID, static_cast<id_t>(pid_), info, options) == 0;
}

void GroupLeader::kill_group() noexcept {
  if (pidfd_ && (signal(SIGKILL, kWholeGroup) == 0 || errno == ESRCH)) return;
  if (!has_its_number()) return;
  ::kill(-pid_, SIGKILL);
  // It may not have got as far as leading a group.
  if (pidfd_) {
    signal(SIGKILL, 0);
  } else {
    ::kill(pid_, SIGKILL);
  }
}

Ending GroupLeader::end() {
  kill_group();
  siginfo_t info;
  int reaped = -1;
  if (pidfd_) {
    if (!ended_within(kReapMs)) return {"was killed and hangs in the kernel", false};
    reaped = wait_for(kByDescriptor, static_cast<id_t>(pidfd_.get()), info, WEXITED | WNOHANG);
    pidfd_.reset();
  } else if (without_descriptors_ || has_its_number()) {
    reaped = wait_for(P_PID, static_cast<id_t>(pid_), info, WEXITED);
  }
  // A program that ignores SIGCHLD, or reaps every child itself, leaves nothing to read.
  if (reaped < 0 || info.si_pid == 0) return {"ended, how is not known", false};
  return ending_of(info);
}

}  // namespace broach::specializer
