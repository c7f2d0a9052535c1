#include <fmt/core.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "cache/file.hpp"
#include "tools/broach/command.hpp"
#include "tools/broach/stored_object.hpp"

namespace broach::tool {
namespace {

/// A program that prints a binary's instructions, with its options.
struct Disassembler {
  const char* program;
  std::vector<std::string> options;
};

/// Those that know a kind of binary, best first.
std::vector<Disassembler> disassemblers_for(const std::string& kind) {
  if (kind == "cubin") return {{"nvdisasm", {"-c"}}, {"cuobjdump", {"-sass"}}};
  if (kind == "code_object") return {{"llvm-objdump", {"-d"}}};
  return {{"objdump", {"-d", "-C"}}, {"llvm-objdump", {"-d", "-C"}}};
}

/// A program on the search path, or nothing.
std::string found_on(const std::string& search_path, const std::string& program) {
  std::string_view left = search_path.empty() ? "/usr/local/bin:/usr/bin:/bin" : search_path;
  while (!left.empty()) {
    const std::string_view folder = left.substr(0, left.find(':'));
    left.remove_prefix(std::min(folder.size() + 1, left.size()));
    std::string path = std::string(folder) + "/" + program;
    // A relative part would depend on where the command is run.
    if (folder.starts_with('/') && ::access(path.c_str(), X_OK) == 0) return path;
  }
  return {};
}

/// Runs a program with this process's standard output and waits for it.
Result<int> run(const std::string& path, std::vector<std::string> words) {
  words.insert(words.begin(), path);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  if (const int error = ::posix_spawn(&child, path.c_str(), nullptr, nullptr, argv.data(), environ);
      error != 0) {
    return Error{
        ErrorCode::kIo,
        fmt::format("{} cannot be started: {}", path, std::generic_category().message(error)), ""};
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

Result<ExitStatus> disassemble(Session& session, const std::string& digits) {
  auto cache = session.stored_cache(Session::Need::kRead);
  if (!cache) return cache.error();
  auto object = stored_object(**cache, digits);
  if (!object) return object.error();
  std::string tried;
  for (const Disassembler& each : disassemblers_for(object->description.kind)) {
    const std::string path = found_on(session.options().search_path, each.program);
    if (path.empty()) {
      tried += (tried.empty() ? "" : ", ") + std::string(each.program);
      continue;
    }
    // Inherited, so that the program can open it by its number.
    const cache::Fd file(::memfd_create("broach-binary", 0));
    if (!file) {
      return Error{ErrorCode::kIo,
                   "no memory for a file: " + std::generic_category().message(errno), ""};
    }
    if (auto done = cache::write_bytes(file, object->payload, "a file in memory"); !done) {
      return done.error();
    }
    std::vector<std::string> words = each.options;
    words.push_back("/proc/self/fd/" + std::to_string(file.get()));
    auto status = run(path, std::move(words));
    if (!status) return status.error();
    if (*status == 0) return ExitStatus::kSuccess;
    return Error{ErrorCode::kCompileFailed, fmt::format("{} ended with status {}", path, *status),
                 ""};
  }
  return Error{
      ErrorCode::kNotFound,
      fmt::format("no program on PATH prints the instructions of a {}: {}; `broach extract "
                  "{} -o FILE` writes it for one elsewhere",
                  object->description.kind, tried, digits),
      ""};
}

}  // namespace

void add_disassemble(CommandLine& line) {
  auto digits = std::make_shared<std::string>();
  Command command = line.add("disassemble", "Print the instructions of an entry's binary");
  command.add_option("KEY", *digits, "The first digits of a key").required();
  command.footer(
      "Uses nvdisasm or cuobjdump for NVIDIA, llvm-objdump for AMD and objdump for the host, "
      "where\n"
      "PATH has them.");
  command.action([digits](Session& session) { return disassemble(session, *digits); });
}

}  // namespace broach::tool
