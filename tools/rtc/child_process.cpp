#include "tools/rtc/child_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "specializer/compile/unique_fd.hpp"

extern char** environ;

namespace broach::rtc {
namespace {

using specializer::rtc::UniqueFd;

// What of a flood is shown: people see what kept on coming.
constexpr std::size_t kShownBytes = std::size_t{64} << 10;

Error os_error(const std::string& what) {
  return Error{ErrorCode::kIo, what + ": " + std::strerror(errno), ""};
}

// In memory: nothing has to feed it while the program runs.
Result<UniqueFd> memory_file(const std::string& bytes) {
  UniqueFd fd(::memfd_create("broach-rtc-stream", MFD_CLOEXEC));
  if (!fd) return os_error("memfd_create");
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t wrote =
        ::pwrite(fd.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (wrote < 0 && errno != EINTR) return os_error("writing the source");
    if (wrote > 0) done += static_cast<std::size_t>(wrote);
  }
  return fd;
}

struct Pipe {
  UniqueFd from;
  UniqueFd to;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return os_error("pipe2");
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

/// A program that runs; killed and reaped with its owner.
class Running {
 public:
  explicit Running(pid_t pid)
      : pid_(pid), fd_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {}
  ~Running() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    static_cast<void>(wait());
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  /// Readable once it has ended; -1 where the kernel has no such descriptors.
  int fd() const noexcept { return fd_.get(); }

  Result<int> wait() {
    int status = 0;
    const pid_t pid = std::exchange(pid_, -1);
    while (::waitpid(pid, &status, 0) < 0) {
      if (errno != EINTR) return os_error("waitpid");
    }
    return status;
  }

 private:
  pid_t pid_;
  UniqueFd fd_;
};

/// One stream of a program's output as it arrives.
struct Stream {
  UniqueFd fd;
  std::string bytes;

  Result<void> read_some() {
    std::array<char, 1 << 16> block;
    const ssize_t got = ::read(fd.get(), block.data(), block.size());
    if (got < 0 && errno != EINTR) return os_error("reading a compiler's output");
    if (got == 0) fd.reset();
    if (got > 0) bytes.append(block.data(), static_cast<std::size_t>(got));
    return {};
  }
};

// Reads both streams until all have closed them, or the program has ended: what it left running
// (a build cache's server) may hold them open for days.
Result<void> read_all(Stream& out, Stream& err, const Running& running,
                      const std::string& program) {
  for (bool ended = false; out.fd || err.fd;) {
    // poll passes over a descriptor of -1.
    std::array<pollfd, 3> entries = {pollfd{out.fd.get(), POLLIN, 0},
                                     pollfd{err.fd.get(), POLLIN, 0},
                                     pollfd{running.fd(), POLLIN, 0}};
    const int ready = ::poll(entries.data(), ended ? 2 : 3, ended ? 0 : -1);
    if (ready < 0 && errno != EINTR) return os_error("poll");
    if (ended && ready == 0) return {};
    if (ready < 0) continue;
    // What it wrote before it ended is read first.
    ended = entries[2].revents != 0;
    if (entries[0].revents != 0) {
      if (auto read = out.read_some(); !read) return read;
    }
    if (entries[1].revents != 0) {
      if (auto read = err.read_some(); !read) return read;
    }
    if (out.bytes.size() + err.bytes.size() > kMaxPrintedBytes) {
      const std::string& flood = out.bytes.size() > err.bytes.size() ? out.bytes : err.bytes;
      return Error{ErrorCode::kLimitExceeded,
                   program + " printed more than " + std::to_string(kMaxPrintedBytes >> 20) +
                       " MiB and was stopped",
                   flood.substr(0, kShownBytes)};
    }
  }
  return {};
}

Result<pid_t> spawn(const std::vector<std::string>& command, int in, int out, int err) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
  pid_t pid = -1;
  const int failure =
      ::posix_spawn(&pid, command.front().c_str(), &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failure == 0) return pid;
  // Too many processes or no memory says nothing about the program.
  const bool of_the_machine =
      failure == EAGAIN || failure == ENOMEM || failure == EMFILE || failure == ENFILE;
  return Error{of_the_machine ? ErrorCode::kIo : ErrorCode::kCompilerMissing,
               command.front() + " cannot be started: " + std::strerror(failure), ""};
}

}  // namespace

Result<ChildOutput> run_child(const std::vector<std::string>& command, const std::string& input) {
  auto in = memory_file(input);
  if (!in) return in.error();
  auto out = make_pipe();
  if (!out) return out.error();
  auto err = make_pipe();
  if (!err) return err.error();
  auto pid = spawn(command, in->get(), out->to.get(), err->to.get());
  if (!pid) return pid.error();
  Running running(*pid);
  out->to.reset();
  err->to.reset();
  Stream from_out{std::move(out->from), {}};
  Stream from_err{std::move(err->from), {}};
  if (auto read = read_all(from_out, from_err, running, command.front()); !read)
    return read.error();
  auto status = running.wait();
  if (!status) return status.error();
  return ChildOutput{*status, std::move(from_out.bytes), std::move(from_err.bytes)};
}

}  // namespace broach::rtc
