#include "tools/rtc/child_process.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "specializer/compile/unique_fd.hpp"

extern char** environ;

namespace broach::rtc {
namespace {

using specializer::rtc::UniqueFd;

Error os_error(const std::string& what) {
  return Error{ErrorCode::kIo, what + ": " + std::strerror(errno), ""};
}

// Files in memory for all three streams: nothing to poll, nothing to deadlock.
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

std::string contents(const UniqueFd& fd) {
  std::string bytes;
  char block[1 << 16];
  for (;;) {
    const ssize_t got = ::pread(fd.get(), block, sizeof block, static_cast<off_t>(bytes.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return bytes;
    bytes.append(block, static_cast<std::size_t>(got));
  }
}

}  // namespace

Result<ChildOutput> run_child(const std::vector<std::string>& command, const std::string& input) {
  auto in = memory_file(input);
  auto out = memory_file("");
  auto err = memory_file("");
  if (!in) return in.error();
  if (!out || !err) return out ? err.error() : out.error();
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, in->get(), STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, out->get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, err->get(), STDERR_FILENO);
  pid_t pid = -1;
  const int failure =
      ::posix_spawn(&pid, command.front().c_str(), &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) {
    return Error{ErrorCode::kCompilerMissing,
                 command.front() + " cannot be started: " + std::strerror(failure), ""};
  }
  ChildOutput output;
  while (::waitpid(pid, &output.status, 0) < 0) {
    if (errno != EINTR) return os_error("waitpid");
  }
  output.out = contents(*out);
  output.err = contents(*err);
  return output;
}

}  // namespace broach::rtc
