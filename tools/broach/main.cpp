// The `broach` command: reads the command line and the environment, runs one subcommand.

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tools/broach/command.hpp"
#include "tools/broach/contract.hpp"

namespace broach::tool {
namespace {

// A stream that was closed would be the next file that is opened, a database for one, and messages
// would go into it. What stands in for standard output cannot be written, so that this shows.
void occupy_closed_streams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    const int opened = ::open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY);
    if (opened >= 0 && opened != fd) ::close(opened);
  }
}

ExitStatus run(int argc, char** argv, Output& output) {
  CommandLine line;
  add_doctor(line);
  add_warm(line);
  add_ls(line);
  add_show(line);
  add_limits(line);
  add_explain(line);
  add_extract(line);
  add_disassemble(line);
  add_family(line);
  add_coverage(line);
  add_export(line);
  add_import(line);
  add_key(line);
  add_diff(line);
  add_run(line);
  add_contract(line);
  add_verify(line);
  add_gc(line);
  add_quarantine(line);
  add_journal(line);
  add_stats(line);
  add_help(line);
  if (const auto ended = line.parse(argc, argv, output)) return *ended;
  const Invocation& invocation = line.invocation();
  const char* terminal = std::getenv("TERM");
  Options options = Options::from_environment();
  if (!options.problems.empty()) {
    std::string rest;
    for (const std::string& problem : std::span(options.problems).subspan(1))
      rest += problem + '\n';
    return output.close(
        output.fail({ErrorCode::kInvalidArgument, options.problems.front(), std::move(rest)}));
  }
  Session session(std::move(options), terminal == nullptr ? "" : terminal, output);
  if (!invocation.cache_dir.empty()) session.use_cache_directory(invocation.cache_dir);
  session.name_families(invocation.families);
  const Result<ExitStatus> status = invocation.action(session);
  return output.close(status ? *status : output.fail(status.error()));
}

}  // namespace
}  // namespace broach::tool

int main(int argc, char** argv) {
  using namespace broach;
  using namespace broach::tool;
  occupy_closed_streams();
  // A reader that went away makes a write fail; for messages that changes nothing.
  std::signal(SIGPIPE, SIG_IGN);
  Output output(stdout, stderr);
  try {
    return static_cast<int>(run(argc, argv, output));
  } catch (const std::bad_alloc&) {
    std::fputs("broach: out of memory\n", stderr);
  } catch (const std::exception& error) {
    try {
      const std::string what = fmt::format("a defect in broach: {}", error.what());
      return static_cast<int>(output.fail({ErrorCode::kInternal, what, ""}));
    } catch (const std::exception&) {
      std::fputs("broach: a defect in broach\n", stderr);
    }
  }
  return static_cast<int>(ExitStatus::kInternal);
}
