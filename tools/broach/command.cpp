#include "tools/broach/command.hpp"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>
#include <utility>

#include "broach/version.hpp"
#include "specializer/spelling.hpp"

namespace broach::tool {
namespace {

// CLI11's own say what a number may be with a bound of 308 digits.
CLI::Validator at_least(int least, const char* name) {
  const auto fault_of = [least](const std::string& text) -> std::string {
    long long value = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    if (read.ec != std::errc{}) return fmt::format("{} is not a number", text);
    return value >= least ? "" : fmt::format("{} is less than {}", text, least);
  };
  return {fault_of, name};
}

}  // namespace

CommandOption& CommandOption::required() { return option_->required(), *this; }

CommandOption& CommandOption::placeholder(const std::string& name) {
  return option_->type_name(name), *this;
}

CommandOption& CommandOption::one_of(const std::vector<std::string>& values) {
  return option_->check(CLI::IsMember(values)), *this;
}

CommandOption& CommandOption::between(int least, int most) {
  return option_->check(CLI::Range(least, most)), *this;
}

CommandOption& CommandOption::positive() { return option_->check(at_least(1, "POSITIVE")), *this; }

CommandOption& CommandOption::not_negative() {
  return option_->check(at_least(0, "NONNEGATIVE")), *this;
}

CommandOption& CommandOption::checked_by(std::function<std::string(const std::string&)> fault_of) {
  return option_->check(std::move(fault_of)), *this;
}

CommandOption& CommandOption::excludes(const std::string& name) {
  return option_->excludes(name), *this;
}

CommandOption& CommandOption::separated_by(char delimiter) {
  return option_->delimiter(delimiter), *this;
}

CommandOption& CommandOption::one_value_each_time() {
  return option_->allow_extra_args(false)->delimiter(','), *this;
}

CommandOption& CommandOption::as_bytes() {
  return option_->transform(CLI::AsSizeValue(/*kb_is_1000=*/false)), *this;
}

CommandOption& CommandOption::defaults_to(const std::string& value) {
  return option_->default_val(value), *this;
}

CommandOption& CommandOption::shows_default() { return option_->capture_default_str(), *this; }

CommandOption Command::add_option(const std::string& names, std::string& value,
                                  const std::string& help) {
  return CommandOption(*app_->add_option(names, value, help));
}

CommandOption Command::add_option(const std::string& names, std::int32_t& value,
                                  const std::string& help) {
  return CommandOption(*app_->add_option(names, value, help));
}

CommandOption Command::add_option(const std::string& names, std::uint32_t& value,
                                  const std::string& help) {
  return CommandOption(*app_->add_option(names, value, help));
}

CommandOption Command::add_option(const std::string& names, std::uint64_t& value,
                                  const std::string& help) {
  return CommandOption(*app_->add_option(names, value, help));
}

CommandOption Command::add_option(const std::string& names, std::optional<std::int32_t>& value,
                                  const std::string& help) {
  return CommandOption(*app_->add_option(names, value, help));
}

CommandOption Command::add_option(const std::string& names, std::optional<std::uint32_t>& value,
                                  const std::string& help) {
  return CommandOption(*app_->add_option(names, value, help));
}

CommandOption Command::add_option(const std::string& names, std::optional<std::uint64_t>& value,
                                  const std::string& help) {
  return CommandOption(*app_->add_option(names, value, help));
}

CommandOption Command::add_option(const std::string& names, std::vector<int>& values,
                                  const std::string& help) {
  return CommandOption(*app_->add_option(names, values, help));
}

CommandOption Command::add_option(const std::string& names, std::vector<std::string>& values,
                                  const std::string& help) {
  return CommandOption(*app_->add_option(names, values, help));
}

CommandOption Command::add_flag(const std::string& names, bool& value, const std::string& help) {
  return CommandOption(*app_->add_flag(names, value, help));
}

Command Command::add_word(const std::string& name, const std::string& help) {
  CLI::App* const word = app_->add_subcommand(name, help);
  word->fallthrough();
  app_->require_subcommand(0, 1);
  return {*word, *invocation_};
}

void Command::require_word() { app_->require_subcommand(1); }

void Command::footer(const std::string& text) { app_->footer(text); }

void Command::action(Action action) {
  // A word's callback runs before that of the subcommand it follows.
  app_->callback([invocation = invocation_, action = std::move(action)] {
    if (!invocation->action) invocation->action = action;
  });
}

CommandLine::CommandLine()
    : app_(std::make_unique<CLI::App>(
          "Kernels ground to one exact shape: compile, inspect, check and run them.", "broach")) {
  app_->require_subcommand(1);
  app_->set_version_flag("--version", BROACH_VERSION);
  app_->footer(
      "`broach COMMAND --help` has a command's options; `broach help TOPIC` prints exit-status,\n"
      "environment, shapes or targets.");
}

CommandLine::~CommandLine() = default;

Command CommandLine::add_plain(const std::string& name, const std::string& help) {
  return {*app_->add_subcommand(name, help), invocation_};
}

Command CommandLine::add(const std::string& name, const std::string& help) {
  Command command = add_plain(name, help);
  command.add_flag("--json", invocation_.json, "Write JSON to standard output");
  command
      .add_option("--cache-dir", invocation_.cache_dir,
                  "Use this cache directory (default: BROACH_CACHE_DIR, XDG_CACHE_HOME/broach, "
                  "~/.cache/broach)")
      .placeholder("DIR");
  command
      .add_option("--family", invocation_.families,
                  "A family file, FILE.json, beside those of BROACH_FAMILY_PATH (may be repeated); "
                  "with a name, only that family's where entries or kernels are listed")
      .one_value_each_time()
      .placeholder("FILE|NAME");
  return command;
}

// The first word names the command; the library's own words for another one say less.
Result<void> CommandLine::check_command(std::span<char* const> words) const {
  if (words.size() < 2 || words[1][0] == '-') return {};
  const std::string_view word = words[1];
  std::vector<std::string> names;
  for (const CLI::App* command : app_->get_subcommands({})) names.push_back(command->get_name());
  if (std::find(names.begin(), names.end(), word) != names.end()) return {};
  const std::vector<std::string_view> known(names.begin(), names.end());
  const std::string meant = specializer::did_you_mean(word, known);
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("there is no command \"{}\"{} `broach --help` lists what there is", word,
                           meant.empty() ? ";" : meant),
               ""};
}

std::optional<ExitStatus> CommandLine::parse(int argc, char** argv, Output& output) {
  // Looked for before the arguments are read, so that what cannot be read is an error object, too.
  const std::span<char* const> words(argv, static_cast<std::size_t>(argc));
  const bool json = std::any_of(words.begin(), words.end(), [](const char* word) {
    return std::string_view(word) == "--json";
  });
  output.set_style(json ? Style::kJson : Style::kHuman);
  if (const auto known = check_command(words); !known) {
    return output.close(output.fail(known.error()));
  }
  try {
    app_->parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::Success& help) {
    app_->exit(help);  // Prints what was asked for.
    return output.close(ExitStatus::kSuccess);
  } catch (const CLI::ParseError& error) {
    return output.close(output.fail(
        {ErrorCode::kInvalidArgument,
         fmt::format("{} (`broach --help` and `broach COMMAND --help` list what there is)",
                     error.what()),
         ""}));
  }
}

}  // namespace broach::tool
