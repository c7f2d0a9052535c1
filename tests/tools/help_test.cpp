#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/tools/program.hpp"

using namespace broach::test;

namespace {

const char* const kCommands[] = {"contract",   "coverage", "diff",  "doctor", "export",
                                 "warm",       "ls",       "show",  "limits", "explain",
                                 "run",        "verify",   "gc",    "import", "key",
                                 "quarantine", "journal",  "stats", "help"};

std::size_t widest_line(const std::string& text) {
  std::istringstream lines(text);
  std::size_t widest = 0;
  for (std::string line; std::getline(lines, line);) widest = std::max(widest, line.size());
  return widest;
}

}  // namespace

TEST_CASE("the help lists every command and where more is told", "[tools][help]") {
  const TempDir dir;
  const Ended help = Program(dir.path()).run({"--help"});
  CHECK(help.status == 0);
  CHECK(help.err.empty());
  for (const char* command : kCommands) {
    CHECK(help.out.find(std::string("\n  ") + command + " ") != std::string::npos);
  }
  CHECK(help.out.find("exit-status") != std::string::npos);
  CHECK(widest_line(help.out) <= 100);
  CHECK(Program(dir.path()).run({"help"}).status == 0);
}

TEST_CASE("each command's help is there and says that it writes JSON", "[tools][help]") {
  const TempDir dir;
  for (const char* command : kCommands) {
    CAPTURE(command);
    const Ended help = Program(dir.path()).run({command, "--help"});
    CHECK(help.status == 0);
    if (std::string(command) == "help") continue;
    CHECK(help.out.find("--json") != std::string::npos);
    CHECK(help.out.find("--cache-dir") != std::string::npos);
  }
}

TEST_CASE("the exit statuses and the environment can be read from the command", "[tools][help]") {
  const TempDir dir;
  const Program program(dir.path());
  const Ended statuses = program.run({"help", "exit-status"});
  CHECK(statuses.status == 0);
  for (const char* line : {"\n  0  ", "\n  1  ", "\n  2  ", "\n  3  ", "\n  4  ", "\n  5  "}) {
    CHECK(statuses.out.find(line) != std::string::npos);
  }
  CHECK(widest_line(statuses.out) <= 100);
  const Ended environment = program.run({"help", "environment"});
  CHECK(environment.status == 0);
  CHECK(environment.out.find("BROACH_CACHE_DIR") != std::string::npos);
  CHECK(widest_line(environment.out) <= 100);
}

TEST_CASE("a command line that cannot be read ends with 2 and one line that says why",
          "[tools][help]") {
  const TempDir dir;
  const Program program(dir.path());
  const std::vector<std::vector<std::string>> wrong = {{},
                                                       {"frobnicate"},
                                                       {"ls", "--frobnicate"},
                                                       {"show"},
                                                       {"warm", "--jobs", "none", "gemma-4"},
                                                       {"help", "frobnicate"}};
  for (const auto& arguments : wrong) {
    const Ended ended = program.run(arguments);
    CAPTURE(ended.err);
    CHECK(ended.status == 2);
    CHECK(ended.out.empty());
    CHECK(ended.err.starts_with("broach: "));
    CHECK(std::count(ended.err.begin(), ended.err.end(), '\n') == 1);
  }
}

TEST_CASE("help and version write nothing to the cache", "[tools][help]") {
  const TempDir dir;
  const Program program(dir.path());
  CHECK(program.run({"--version"}).status == 0);
  CHECK(program.run({"--help"}).status == 0);
  CHECK_FALSE(std::filesystem::exists(program.cache()));
}
