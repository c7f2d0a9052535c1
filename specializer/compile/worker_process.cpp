#include "specializer/compile/worker_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>

namespace broach::specializer {
namespace {

namespace fs = std::filesystem;
using rtc::UniqueFd;

constexpr off_t kLogTailBytes = off_t{16} << 10;
// How long a worker that hung up may take to end by itself before it is killed: only then does
// its own signal or status show.
constexpr int kLastWordsMs = 2000;

Error os_error(const std::string& what) {
  return Error{ErrorCode::kIo, what + ": " + std::strerror(errno), ""};
}

// A descriptor of 3 or more: one below would be closed or overwritten while the child's standard
// streams are put in place.
UniqueFd above_stdio(UniqueFd fd) {
  if (!fd || fd.get() > STDERR_FILENO) return fd;
  return UniqueFd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> out;
  for (const std::string& word : words) out.push_back(const_cast<char*>(word.c_str()));
  out.push_back(nullptr);
  return out;
}

class SpawnSetup {
 public:
  SpawnSetup(int socket, int log) {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawn_file_actions_adddup2(&actions_, socket, STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions_, log, STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions_, log, STDERR_FILENO);
    ::posix_spawnattr_init(&attributes_);
    // The host program's dispositions and mask are not the worker's business.
    sigset_t signals;
    ::sigemptyset(&signals);
    ::posix_spawnattr_setsigmask(&attributes_, &signals);
    ::sigfillset(&signals);
    ::sigdelset(&signals, SIGKILL);
    ::sigdelset(&signals, SIGSTOP);
    ::posix_spawnattr_setsigdefault(&attributes_, &signals);
    ::posix_spawnattr_setpgroup(&attributes_, 0);
    ::posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~SpawnSetup() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;

  int spawn(pid_t& pid, const WorkerLaunch& launch) {
    auto arguments = pointers(launch.command);
    auto environment = pointers(launch.environment);
    return ::posix_spawn(&pid, launch.command.front().c_str(), &actions_, &attributes_,
                         arguments.data(), environment.data());
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

std::string words_for(int status) {
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    return "ended by signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")";
  }
  return "ended with status " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

WorkerProcess::WorkerProcess(rtc::Channel channel, UniqueFd log, pid_t pid, fs::path scratch)
    : channel_(std::move(channel)),
      log_(std::move(log)),
      pidfd_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))),
      pid_(pid),
      scratch_(std::move(scratch)) {}

WorkerProcess::~WorkerProcess() {
  if (pid_ > 0) end(Patience::kNone);
  if (!scratch_.empty()) {
    std::error_code ignored;
    fs::remove_all(scratch_, ignored);
  }
}

Result<std::unique_ptr<WorkerProcess>> WorkerProcess::start(const WorkerLaunch& launch) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return os_error("socketpair");
  }
  UniqueFd first(ends[0]);
  UniqueFd second(ends[1]);
  UniqueFd ours = above_stdio(std::move(first));
  UniqueFd theirs = above_stdio(std::move(second));
  // In memory and append-only: nobody has to drain it while the worker writes.
  UniqueFd log = above_stdio(UniqueFd(::memfd_create("broach-rtc-log", MFD_CLOEXEC)));
  if (!ours || !theirs || !log || ::fcntl(log.get(), F_SETFL, O_APPEND) != 0) {
    return os_error("descriptors for a compile worker");
  }
  std::string scratch = (launch.scratch_parent / "broach-rtc-XXXXXX").string();
  if (::mkdtemp(scratch.data()) == nullptr) {
    return os_error("a private directory in " + launch.scratch_parent.string());
  }
  WorkerLaunch mine = launch;
  mine.environment.push_back("TMPDIR=" + scratch);
  pid_t pid = -1;
  const int failure = SpawnSetup(theirs.get(), log.get()).spawn(pid, mine);
  if (failure != 0) {
    ::rmdir(scratch.c_str());
    return Error{ErrorCode::kCompilerDied,
                 "compile worker " + launch.command.front() +
                     " cannot be started: " + std::strerror(failure),
                 ""};
  }
  return std::unique_ptr<WorkerProcess>(
      new WorkerProcess(rtc::Channel(std::move(ours)), std::move(log), pid, std::move(scratch)));
}

bool WorkerProcess::hung_up() const {
  // An idle worker has nothing to say: whatever there is to read, it is done for.
  pollfd entry{channel_.fd(), POLLIN | POLLRDHUP, 0};
  return ::poll(&entry, 1, 0) != 0;
}

Result<rtc::Message> WorkerProcess::exchange(const rtc::Message& request, rtc::Deadline deadline) {
  if (auto sent = channel_.send(request, deadline); !sent) {
    if (sent.error().reason == Reason::kTooLong) return sent.error();
    if (sent.error().code == ErrorCode::kTimedOut) return end(Patience::kNone), sent.error();
    return Error{ErrorCode::kCompilerDied, end(Patience::kLastWords), log_tail()};
  }
  auto answer = channel_.receive(deadline);
  if (answer) {
    // Warnings of a worker that serves for days must not pile up in memory.
    if (::ftruncate(log_.get(), 0) != 0) log_.reset();
    return answer;
  }
  if (answer.error().code == ErrorCode::kTimedOut) return end(Patience::kNone), answer.error();
  if (answer.error().code == ErrorCode::kDamaged) {
    end(Patience::kNone);
    return Error{ErrorCode::kCompilerDied, "broke off: " + answer.error().message, log_tail()};
  }
  return Error{ErrorCode::kCompilerDied, end(Patience::kLastWords), log_tail()};
}

std::string WorkerProcess::end(Patience patience) {
  if (patience == Patience::kLastWords && pidfd_) {
    pollfd entry{pidfd_.get(), POLLIN, 0};
    while (::poll(&entry, 1, kLastWordsMs) < 0 && errno == EINTR) {
    }
  }
  // The leader is not reaped yet, so the group's number is still its own.
  ::kill(-pid_, SIGKILL);
  ::kill(pid_, SIGKILL);
  int status = 0;
  pid_t reaped = -1;
  while ((reaped = ::waitpid(pid_, &status, 0)) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  // A program that ignores SIGCHLD, or reaps every child itself, leaves nothing to read.
  return reaped < 0 ? "ended, how is not known" : words_for(status);
}

std::string WorkerProcess::log_tail() const {
  struct stat info {};
  if (!log_ || ::fstat(log_.get(), &info) != 0) return "";
  const off_t start = std::max<off_t>(0, info.st_size - kLogTailBytes);
  std::string tail(static_cast<std::size_t>(info.st_size - start), '\0');
  const ssize_t got = ::pread(log_.get(), tail.data(), tail.size(), start);
  tail.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return tail;
}

}  // namespace broach::specializer
