// The `broach` command: reads the command line and the environment, runs one subcommand.

#include <fmt/core.h>

#include <cstdlib>
#include <new>
#include <utility>

#include "broach/version.hpp"
#include "tools/broach/command.hpp"
#include "tools/broach/contract.hpp"

namespace broach::tool {
namespace {

ExitStatus run(int argc, char** argv) {
  Output output(stdout, stderr);
  CLI::App app("Kernels ground to one exact shape: compile, inspect, check and run them.",
               "broach");
  app.require_subcommand(1);
  app.set_version_flag("--version", BROACH_VERSION);
  app.footer(
      "`broach COMMAND --help` has a command's options; `broach help TOPIC` prints exit-status,\n"
      "environment or shapes.");
  Invocation invocation;
  add_doctor(app, invocation);
  add_warm(app, invocation);
  add_ls(app, invocation);
  add_show(app, invocation);
  add_limits(app, invocation);
  add_explain(app, invocation);
  add_coverage(app, invocation);
  add_export(app, invocation);
  add_import(app, invocation);
  add_key(app, invocation);
  add_diff(app, invocation);
  add_run(app, invocation);
  add_contract(app, invocation);
  add_verify(app, invocation);
  add_gc(app, invocation);
  add_quarantine(app, invocation);
  add_journal(app, invocation);
  add_stats(app, invocation);
  add_help(app, invocation);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    app.exit(help);  // Prints what was asked for.
    return output.close(ExitStatus::kSuccess);
  } catch (const CLI::ParseError& error) {
    output.note(fmt::format("{} (`broach --help` and `broach COMMAND --help` list what there is)",
                            error.what()));
    return ExitStatus::kBadInput;
  }
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
