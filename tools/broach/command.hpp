#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "broach/result.hpp"
#include "tools/broach/exit_status.hpp"
#include "tools/broach/session.hpp"

namespace broach::tool {

/// What a subcommand does once the command line has been read.
using Action = std::function<Result<ExitStatus>(Session&)>;

/// What the command line said: the subcommand's action and the options that all of them take.
struct Invocation {
  Action action;
  bool json = false;  // CLI11 sets a flag through a bool.
  std::string cache_dir;
};

/// Adds a subcommand that takes `--json` and `--cache-dir` as every one does.
CLI::App& add_subcommand(CLI::App& app, Invocation& invocation, const std::string& name,
                         const std::string& description);

// One a file. Each declares its options on `app` and sets `invocation.action` when it is chosen.
void add_coverage(CLI::App& app, Invocation& invocation);
void add_diff(CLI::App& app, Invocation& invocation);
void add_doctor(CLI::App& app, Invocation& invocation);
void add_explain(CLI::App& app, Invocation& invocation);
void add_export(CLI::App& app, Invocation& invocation);
void add_gc(CLI::App& app, Invocation& invocation);
void add_help(CLI::App& app, Invocation& invocation);
void add_import(CLI::App& app, Invocation& invocation);
void add_journal(CLI::App& app, Invocation& invocation);
void add_key(CLI::App& app, Invocation& invocation);
void add_limits(CLI::App& app, Invocation& invocation);
void add_ls(CLI::App& app, Invocation& invocation);
void add_quarantine(CLI::App& app, Invocation& invocation);
void add_run(CLI::App& app, Invocation& invocation);
void add_show(CLI::App& app, Invocation& invocation);
void add_stats(CLI::App& app, Invocation& invocation);
void add_verify(CLI::App& app, Invocation& invocation);
void add_warm(CLI::App& app, Invocation& invocation);

}  // namespace broach::tool
