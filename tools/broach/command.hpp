#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "broach/result.hpp"
#include "tools/broach/exit_status.hpp"
#include "tools/broach/session.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace broach::tool {

/// What a subcommand does once the command line has been read.
using Action = std::function<Result<ExitStatus>(Session&)>;

/// An option while it is declared. CLI11's header costs every file that includes it seconds to
/// compile, so command.cpp alone has it.
class CommandOption {
 public:
  explicit CommandOption(CLI::Option& option) : option_(&option) {}

  CommandOption& required();
  CommandOption& placeholder(const std::string& name);  ///< What help shows for the value.
  CommandOption& one_of(const std::vector<std::string>& values);
  CommandOption& between(int least, int most);
  CommandOption& positive();
  CommandOption& not_negative();
  /// By a function that says what is wrong with a value, or nothing.
  CommandOption& checked_by(std::function<std::string(const std::string&)> fault_of);
  CommandOption& excludes(const std::string& name);  ///< An option that was added before.
  CommandOption& separated_by(char delimiter);
  /// Of a list: `--key A --key B` or `--key A,B`; a word that follows a value is no further one.
  CommandOption& one_value_each_time();
  CommandOption& as_bytes();  ///< Takes 500M and 2G; K is 1024.
  CommandOption& defaults_to(const std::string& value);
  CommandOption& shows_default();  ///< The variable's own.

 private:
  CLI::Option* option_;
};

struct Invocation;

/// A subcommand while it is declared.
///
/// Owns:    nothing; the variables that options write to must live until the action has run.
class Command {
 public:
  Command(CLI::App& app, Invocation& invocation) : app_(&app), invocation_(&invocation) {}

  CommandOption add_option(const std::string& names, std::string& value, const std::string& help);
  CommandOption add_option(const std::string& names, std::int32_t& value, const std::string& help);
  CommandOption add_option(const std::string& names, std::uint32_t& value, const std::string& help);
  CommandOption add_option(const std::string& names, std::uint64_t& value, const std::string& help);
  CommandOption add_option(const std::string& names, std::optional<std::int32_t>& value,
                           const std::string& help);
  CommandOption add_option(const std::string& names, std::optional<std::uint32_t>& value,
                           const std::string& help);
  CommandOption add_option(const std::string& names, std::optional<std::uint64_t>& value,
                           const std::string& help);
  CommandOption add_option(const std::string& names, std::vector<int>& values,
                           const std::string& help);
  CommandOption add_option(const std::string& names, std::vector<std::string>& values,
                           const std::string& help);
  CommandOption add_flag(const std::string& names, bool& value, const std::string& help);

  /// A word that may follow, with options and an action of its own: `broach journal clear`.
  Command add_word(const std::string& name, const std::string& help);
  void require_word();

  void footer(const std::string& text);

  /// What is done when this subcommand is chosen, and no word with an action is.
  void action(Action action);

 private:
  CLI::App* app_;
  Invocation* invocation_;
};

/// What the command line said.
struct Invocation {
  Action action;
  bool json = false;
  std::string cache_dir;
  std::vector<std::string> families;
};

/// The command's subcommands, and the reading of its arguments.
class CommandLine {
 public:
  CommandLine();
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  /// Adds a subcommand that takes `--json` and `--cache-dir`, as all but `help` do.
  Command add(const std::string& name, const std::string& help);
  Command add_plain(const std::string& name, const std::string& help);

  /// Reads the arguments. A status when there is nothing left to do: help or the version was
  /// printed, or what is wrong was said.
  std::optional<ExitStatus> parse(int argc, char** argv, Output& output);

  const Invocation& invocation() const { return invocation_; }

 private:
  Result<void> check_command(std::span<char* const> words) const;

  std::unique_ptr<CLI::App> app_;
  Invocation invocation_;
};

// One a file. Each adds its subcommand, with options and action.
void add_coverage(CommandLine& line);
void add_diff(CommandLine& line);
void add_disassemble(CommandLine& line);
void add_doctor(CommandLine& line);
void add_explain(CommandLine& line);
void add_export(CommandLine& line);
void add_extract(CommandLine& line);
void add_family(CommandLine& line);
void add_gc(CommandLine& line);
void add_help(CommandLine& line);
void add_import(CommandLine& line);
void add_journal(CommandLine& line);
void add_key(CommandLine& line);
void add_limits(CommandLine& line);
void add_ls(CommandLine& line);
void add_quarantine(CommandLine& line);
void add_run(CommandLine& line);
void add_show(CommandLine& line);
void add_stats(CommandLine& line);
void add_verify(CommandLine& line);
void add_warm(CommandLine& line);

}  // namespace broach::tool
