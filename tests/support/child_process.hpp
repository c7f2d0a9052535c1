#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace broach::test {

/// A program that was started with pipes on its standard input and output; killed with its owner.
class ChildProcess {
 public:
  ChildProcess(const std::string& program, std::vector<std::string> words) {
    std::array<int, 2> in{};
    std::array<int, 2> out{};
    // Close-on-exec, or a child started later would keep these pipes open.
    if (pipe2(in.data(), O_CLOEXEC) != 0 || pipe2(out.data(), O_CLOEXEC) != 0) {
      throw std::runtime_error("pipe2");
    }
    words.insert(words.begin(), program);
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_ = fork();
    if (pid_ < 0) throw std::runtime_error("fork");
    if (pid_ == 0) {
      dup2(in[0], STDIN_FILENO);
      dup2(out[1], STDOUT_FILENO);
      execv(program.c_str(), argv.data());
      _exit(127);
    }
    close(in[0]);
    close(out[1]);
    in_ = in[1];
    out_ = out[0];
  }
  ChildProcess(ChildProcess&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)),
        in_(std::exchange(other.in_, -1)),
        out_(std::exchange(other.out_, -1)) {}
  ChildProcess& operator=(ChildProcess&& other) noexcept {
    std::swap(pid_, other.pid_);
    std::swap(in_, other.in_);
    std::swap(out_, other.out_);
    return *this;
  }
  ~ChildProcess() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    if (in_ >= 0) close(in_);
    if (out_ >= 0) close(out_);
  }

  pid_t pid() const noexcept { return pid_; }
  void signal(int number) const noexcept { ::kill(pid_, number); }

  /// The next line of its output, without the end; empty when the output has ended.
  std::string read_line() const {
    std::string line;
    for (char c = 0; read(out_, &c, 1) == 1 && c != '\n';) line.push_back(c);
    return line;
  }
  void write_line(std::string line = "") const {
    line.push_back('\n');
    (void)!write(in_, line.data(), line.size());
  }

  /// Its exit status, or minus the signal that killed it.
  int wait() {
    int status = 0;
    waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  pid_t pid_ = -1;
  int in_ = -1;
  int out_ = -1;
};

}  // namespace broach::test
