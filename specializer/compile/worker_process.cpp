#include "specializer/compile/worker_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <utility>

namespace broach::specializer {
namespace {

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

// A program that is not there or is none is an installation's fault; the rest is the machine's:
// too many processes, no memory.
bool is_of_the_machine(int error) {
  return error != ENOENT && error != EACCES && error != ENOEXEC && error != ENOTDIR &&
         error != ELOOP && error != EPERM;
}

}  // namespace

WorkerProcess::WorkerProcess(rtc::Channel channel, UniqueFd log, GroupLeader leader,
                             Scratch scratch)
    : channel_(std::move(channel)),
      log_(std::move(log)),
      leader_(std::move(leader)),
      scratch_(std::move(scratch)) {}

WorkerProcess::~WorkerProcess() {
  if (registry_ != nullptr) registry_->remove(this);
  try {
    if (leader_) end(Patience::kNone);
  } catch (const std::exception&) {
    // It was ended; only the words about that found no memory.
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
  Scratch scratch;
  WorkerLaunch mine = launch;
  if (!launch.scratch_parents.empty()) {
    auto made = Scratch::create(launch.scratch_parents);
    if (!made) return std::move(made).error();
    scratch = std::move(*made);
    mine.environment.push_back("TMPDIR=" + scratch.path().string());
  }
  pid_t pid = -1;
  const int failure = SpawnSetup(theirs.get(), log.get()).spawn(pid, mine);
  if (failure != 0) {
    return Error{is_of_the_machine(failure) ? ErrorCode::kIo : ErrorCode::kCompilerDied,
                 "compile worker " + launch.command.front() +
                     " cannot be started: " + std::strerror(failure),
                 ""};
  }
  GroupLeader leader(pid);
  if (!leader.held()) {
    const Error error = os_error("a descriptor for a compile worker");
    leader.end();
    return error;
  }
  std::unique_ptr<WorkerProcess> worker(new WorkerProcess(
      rtc::Channel(std::move(ours)), std::move(log), std::move(leader), std::move(scratch)));
  if (auto entered = worker->enter(launch.registry); !entered) return std::move(entered).error();
  return worker;
}

Result<void> WorkerProcess::enter(WorkerRegistry* registry) {
  if (registry == nullptr) return {};
  if (!registry->add(this)) {
    return Error{ErrorCode::kIo, "no compile worker is started: its compilers are being closed",
                 ""};
  }
  registry_ = registry;
  return {};
}

bool WorkerProcess::hung_up() const {
  // An idle worker has nothing to say: whatever there is to read, it is done for.
  pollfd entry{channel_.fd(), POLLIN | POLLRDHUP, 0};
  return ::poll(&entry, 1, 0) != 0;
}

Result<rtc::Message> WorkerProcess::exchange(const rtc::Message& request, rtc::Deadline deadline) {
  if (auto sent = channel_.send(request, deadline); !sent) {
    if (sent.error().reason == Reason::kTooLong) return sent.error();
    return failed(std::move(sent).error());
  }
  auto answer = channel_.receive(deadline);
  if (!answer) return failed(std::move(answer).error());
  // Warnings of a worker that serves for days must not pile up in memory.
  if (::ftruncate(log_.get(), 0) != 0) log_.reset();
  return answer;
}

Error WorkerProcess::failed(Error error) {
  if (error.code == ErrorCode::kCompilerDied) return died();
  end(Patience::kNone);
  if (error.code != ErrorCode::kDamaged) return error;
  return Error{ErrorCode::kCompilerDied, "broke off: " + error.message, log_tail()};
}

Ending WorkerProcess::end(Patience patience) {
  if (patience == Patience::kLastWords) leader_->ended_within(kLastWordsMs);
  Ending ending = leader_->end();
  leader_.reset();
  return ending;
}

Error WorkerProcess::died() {
  if (interrupted_) {
    end(Patience::kNone);
    return Error{ErrorCode::kIo, "was ended: its compilers are being closed", ""};
  }
  const Ending ending = end(Patience::kLastWords);
  // Who was killed from outside might well have done its work.
  return Error{ErrorCode::kCompilerDied, ending.words, log_tail(),
               ending.by_itself ? Reason::kNone : Reason::kMachine};
}

void WorkerProcess::interrupt() const noexcept {
  interrupted_ = true;
  channel_.hang_up();
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
