#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "specializer/compile/elf_build_id.hpp"
#include "specializer/compile/flatten.hpp"
#include "specializer/compile/trouble.hpp"
#include "specializer/compile/unique_fd.hpp"
#include "tools/rtc/child_process.hpp"
#include "tools/rtc/compiler.hpp"
#include "tools/rtc/files_read.hpp"
#include "tools/rtc/log.hpp"

namespace broach::rtc {
namespace {

namespace fs = std::filesystem;
using specializer::rtc::UniqueFd;

std::string first_line(std::string_view text) {
  return std::string(text.substr(0, text.find('\n')));
}

std::string build_id_or_empty(const fs::path& file) {
  auto id = specializer::rtc::build_id_of(file);
  return id ? *id : std::string();
}

// GCC's first line starts with the name it was called by, which is not the compiler's.
std::string version_words(const std::string& line, const fs::path& driver) {
  const std::string called = driver.filename().string() + " (";
  return line.starts_with(called) ? "g++ (" + line.substr(called.size()) : line;
}

class HostCxx final : public Compiler {
 public:
  const Opened& opened() const override { return opened_; }

  Result<void> open(const OpenRequest& request) {
    driver_ = request.path;
    scratch_ = request.scratch;
    auto version = ask("--version");
    if (!version) return version.error();
    auto machine = ask("-dumpmachine");
    if (!machine) return machine.error();
    opened_.words = version_words(*version, driver_);
    opened_.key_text = opened_.words + " " + *machine;
    opened_.targets = {*machine};
    opened_.images = {{driver_.string(), build_id_or_empty(driver_)}};
    // The compiler proper. A driver that names none (clang, a wrapper such as ccache) stands on
    // files that are not known here: without a build id it is asked every time.
    auto proper = ask("-print-prog-name=cc1plus");
    const bool named = proper && proper->starts_with('/');
    opened_.images.push_back({named ? *proper : "", named ? build_id_or_empty(*proper) : ""});
    return {};
  }

  Result<Compiled> compile(const CompileRequest& request) override {
    const auto start = std::chrono::steady_clock::now();
    if (!request.name_expressions.empty()) {
      return Error{ErrorCode::kUnsupported,
                   "the host compiler does not say what it calls \"" +
                       request.name_expressions.front() +
                       "\"; declare the kernel with the macro of broach/kernel.cuh",
                   ""};
    }
    auto text = specializer::rtc::flatten(request.sources);
    if (!text) return text.error();
    const fs::path output = scratch_ / "out.so";
    // A name that needs a random number takes it from here, so that the same bytes come out.
    std::vector<std::string> command = {driver_.string(), "-frandom-seed=broach"};
    command.insert(command.end(), request.options.begin(), request.options.end());
    // Without any directory to search, GCC takes `__has_include` for an error.
    const fs::path nothing = scratch_ / "include";
    std::error_code ignored;
    fs::create_directory(nothing, ignored);
    command.push_back("-I" + nothing.string());
    const fs::path listed = scratch_ / "read";
    command.insert(command.end(),
                   {"-MD", "-MF", listed.string(), "-o", output.string(), "-x", "c++", "-"});
    auto child = run_child(command, *text);
    if (!child) return child.error();
    Compiled compiled;
    compiled.log = std::move(child->err) + child->out;
    if (child->status != 0) {
      fs::remove(output, ignored);
      return failure(child->status, std::move(compiled.log));
    }
    compiled.log = bounded_log(std::move(compiled.log));
    // GCC reads this one before any source, unless it is told of no directory.
    auto own = check_files_read(
        listed, [](const std::string& file) { return file.ends_with("/stdc-predef.h"); });
    if (!own) {
      fs::remove(output, ignored);
      return own.error();
    }
    auto binary = contents(output);
    fs::remove(output, ignored);
    if (!binary) return binary.error();
    if (binary->empty()) {
      return Error{ErrorCode::kCompileFailed, "the compiler wrote no shared object", compiled.log};
    }
    compiled.binary = std::move(*binary);
    compiled.compile_ms = static_cast<std::uint32_t>(
        std::chrono::ceil<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start)
            .count());
    return compiled;
  }

 private:
  static Error failure(int status, std::string log) {
    using specializer::rtc::Trouble;
    ErrorCode code = ErrorCode::kCompileFailed;
    const Trouble trouble = specializer::rtc::trouble_in(log);
    if (trouble == Trouble::kMemory) {
      code = ErrorCode::kOutOfMemory;
    } else if (trouble == Trouble::kMachine || was_ended(status, log)) {
      code = ErrorCode::kIo;
    } else if (WIFSIGNALED(status) || log.find(" signal terminated program") != std::string::npos) {
      code = ErrorCode::kCompilerDied;
    }
    return Error{code, first_complaint(log), bounded_log(std::move(log))};
  }

  // Ended by somebody, or by the system for want of memory: not by a fault of its own. The driver
  // reports how the compiler proper ended in words.
  static bool was_ended(int status, std::string_view log) {
    if (WIFSIGNALED(status)) {
      const int signal = WTERMSIG(status);
      return signal == SIGKILL || signal == SIGTERM || signal == SIGINT || signal == SIGHUP;
    }
    return log.find("Killed signal terminated program") != std::string_view::npos ||
           log.find("Terminated signal terminated program") != std::string_view::npos;
  }

  // Tells a file that is not there, which is empty, from one that cannot be read.
  static Result<std::string> contents(const fs::path& file) {
    const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
    std::string bytes;
    if (!fd && errno == ENOENT) return bytes;
    ssize_t got = fd ? 1 : -1;
    std::array<char, 1 << 16> block;
    while (got > 0) {
      got = ::read(fd.get(), block.data(), block.size());
      if (got > 0) bytes.append(block.data(), static_cast<std::size_t>(got));
      if (got < 0 && errno == EINTR) got = 1;
    }
    if (got == 0) return bytes;
    return Error{ErrorCode::kIo, "reading " + file.string() + ": " + std::strerror(errno), ""};
  }

  Result<std::string> ask(const std::string& option) const {
    auto child = run_child({driver_.string(), option}, "");
    if (!child) return child.error();
    if (child->status != 0 || child->out.empty()) {
      return Error{ErrorCode::kCompilerMissing,
                   driver_.string() + " " + option + " failed: it is no C++ compiler", child->err};
    }
    return first_line(child->out);
  }

  fs::path driver_;
  fs::path scratch_;
  Opened opened_;
};

}  // namespace

Result<std::unique_ptr<Compiler>> open_host_cxx(const OpenRequest& request) {
  auto compiler = std::make_unique<HostCxx>();
  if (auto opened = compiler->open(request); !opened) return opened.error();
  return std::unique_ptr<Compiler>(std::move(compiler));
}

}  // namespace broach::rtc
