// The `broach` command: reads the command line and the environment, runs one subcommand.

#include <cstdio>
#include <cstdlib>
#include <new>
#include <utility>

#include "tools/broach/command.hpp"
#include "tools/broach/contract.hpp"

namespace broach::tool {
namespace {

ExitStatus run(int argc, char** argv) {
  Output output(stdout, stderr);
  CommandLine line;
  add_doctor(line);
  add_warm(line);
  add_ls(line);
  add_show(line);
  add_limits(line);
  add_explain(line);
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
  output.set_style(invocation.json ? Style::kJson : Style::kHuman);
  const char* terminal = std::getenv("TERM");
  Options options = Options::from_environment();
  if (!options.problems.empty()) {
    for (const std::string& problem : options.problems) output.note(problem);
    return ExitStatus::kBadInput;
  }
  Session session(std::move(options), terminal == nullptr ? "" : terminal, output);
  if (!invocation.cache_dir.empty()) session.use_cache_directory(invocation.cache_dir);
  const Result<ExitStatus> status = invocation.action(session);
  return output.close(status ? *status : output.fail(status.error()));
}

}  // namespace
}  // namespace broach::tool

int main(int argc, char** argv) {
  try {
    return static_cast<int>(broach::tool::run(argc, argv));
  } catch (const std::bad_alloc&) {
    std::fputs("broach: out of memory\n", stderr);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "broach: a defect in broach: %s\n", error.what());
  }
  return static_cast<int>(broach::tool::ExitStatus::kInternal);
}
