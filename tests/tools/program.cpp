#include "tests/tools/program.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <stdexcept>
#include <utility>

#include "tests/support/temp_dir.hpp"

namespace broach::test {
namespace {

/// A cache directory that was filled by one cold run.
class Warmed {
 public:
  Warmed() : program_(dir_.path()), ended_(program_.run(warm_arguments({"--json"}))) {
    if (ended_.status != 0) throw std::runtime_error("warm: " + ended_.err);
  }

  const Program& program() const noexcept { return program_; }
  const Ended& ended() const noexcept { return ended_; }

 private:
  TempDir dir_;
  Program program_;
  Ended ended_;
};

const Warmed& warmed() {
  static const Warmed once;
  return once;
}

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) throw std::runtime_error("waitpid");
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// Reads both ends until both are closed.
void read_all(std::array<pollfd, 2> ends, std::array<std::string*, 2> texts) {
  int open = static_cast<int>(ends.size());
  while (open > 0) {
    if (poll(ends.data(), ends.size(), -1) < 0) continue;
    for (std::size_t e = 0; e < ends.size(); ++e) {
      if (ends[e].fd < 0 || ends[e].revents == 0) continue;
      std::array<char, 4096> bytes{};
      const ssize_t count = read(ends[e].fd, bytes.data(), bytes.size());
      if (count > 0) {
        texts[e]->append(bytes.data(), static_cast<std::size_t>(count));
      } else {
        ends[e].fd = -1;
        --open;
      }
    }
  }
}

}  // namespace

Program::Program(std::filesystem::path home) : home_(std::move(home)) {
  const char* path = std::getenv("PATH");
  environment_["PATH"] = path == nullptr ? "/usr/bin:/bin" : path;
  environment_["HOME"] = home_;
  // Where a machine lacks a library that travelled along; and a leak check at exit, where the
  // program was built with one, is not what these tests are about.
  for (const char* name : {"LD_LIBRARY_PATH", "ASAN_OPTIONS"}) {
    const char* value = std::getenv(name);
    if (value != nullptr) environment_[name] = value;
  }
}

Program& Program::set(const std::string& name, const std::string& value) {
  environment_[name] = value;
  return *this;
}

Program& Program::write_results_to(const std::string& file) {
  results_file_ = file;
  return *this;
}

Program& Program::prepare(std::function<bool()> before) {
  prepare_ = std::move(before);
  return *this;
}

Program& Program::write_messages_to(const std::string& file) {
  messages_file_ = file;
  return *this;
}

Program& Program::mount_small_tmpfs(std::uint64_t bytes) {
  tmpfs_bytes_ = bytes;
  return *this;
}

void Program::become(const std::vector<std::string>& arguments) const {
  if (tmpfs_bytes_ > 0) {
    const std::string size = "mode=700,size=" + std::to_string(tmpfs_bytes_);
    // A mount namespace of its own: the mount ends with the program.
    if (unshare(CLONE_NEWNS) != 0 ||
        mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("tmpfs", home_.c_str(), "tmpfs", 0, size.c_str()) != 0) {
      _exit(kCannotMount);
    }
  }
  const std::string program =
      (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "broach").string();
  std::vector<std::string> words = {program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::vector<std::string> settings;
  for (const auto& [name, value] : environment_) settings.push_back(name + "=" + value);
  std::vector<char*> envp;
  for (std::string& setting : settings) envp.push_back(setting.data());
  envp.push_back(nullptr);
  if (prepare_ && !prepare_()) _exit(kCannotPrepare);
  execve(program.c_str(), argv.data(), envp.data());
  _exit(127);
}

Ended Program::run(const std::vector<std::string>& arguments) const {
  int out[2];
  int err[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork");
  if (child == 0) {
    const int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    if (!results_file_.empty()) dup2(open(results_file_.c_str(), O_WRONLY), STDOUT_FILENO);
    if (messages_file_ && messages_file_->empty()) close(STDERR_FILENO);
    if (messages_file_ && !messages_file_->empty()) {
      dup2(open(messages_file_->c_str(), O_WRONLY), STDERR_FILENO);
    }
    become(arguments);
  }
  close(out[1]);
  close(err[1]);
  Ended ended;
  read_all({pollfd{out[0], POLLIN, 0}, pollfd{err[0], POLLIN, 0}}, {&ended.out, &ended.err});
  close(out[0]);
  close(err[0]);
  ended.status = wait_for(child);
  return ended;
}

Ended Program::run_on_terminal(const std::vector<std::string>& arguments) const {
  winsize size{};
  size.ws_col = 60;
  size.ws_row = 24;
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, &size);
  if (child < 0) throw std::runtime_error("forkpty");
  if (child == 0) become(arguments);
  Ended ended;
  std::array<char, 4096> bytes{};
  // The end of a pseudo-terminal reads as an error once the program has gone.
  for (ssize_t count = 0; (count = read(terminal, bytes.data(), bytes.size())) > 0;) {
    ended.out.append(bytes.data(), static_cast<std::size_t>(count));
  }
  close(terminal);
  ended.status = wait_for(child);
  return ended;
}

std::vector<std::string> warm_arguments(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"warm",   "gemma-4", "--model",  "Gemma 4 12B",
                                        "--form", "decode",  "--target", "host"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

const std::string& cold_warm_output() { return warmed().ended().out; }

void give_warmed_cache(const Program& program) {
  std::filesystem::create_directories(program.cache().parent_path());
  std::filesystem::copy(warmed().program().cache(), program.cache(),
                        std::filesystem::copy_options::recursive);
}

}  // namespace broach::test
