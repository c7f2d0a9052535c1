#include "tools/broach/progress.hpp"

#include <chrono>
#include <cstdio>
#include <string>

#include "tests/support/catch.hpp"

using namespace broach::tool;
using namespace std::chrono_literals;

namespace {

std::string contents(std::FILE* file) {
  std::fflush(file);
  std::rewind(file);
  std::string text;
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) text += static_cast<char>(c);
  return text;
}

}  // namespace

TEST_CASE("in a log each step is a plain line with its number", "[tools][progress]") {
  std::FILE* log = std::tmpfile();
  REQUIRE(log != nullptr);
  CHECK(progress_style_for(log, "xterm") == ProgressStyle::kLines);
  {
    Progress progress(log, ProgressStyle::kLines, 12, {});
    progress.step("first", Progress::Clock::time_point(1s));
    progress.keep("broach: a note");
    progress.step("sec\nond", Progress::Clock::time_point(2s));
  }
  CHECK(contents(log) == " 1/12  first\nbroach: a note\n 2/12  sec\\nond\n");
  std::fclose(log);
}

TEST_CASE("the bar shows what is left at the speed so far and never wraps", "[tools][progress]") {
  Progress progress(stderr, ProgressStyle::kQuiet, 4, {});
  progress.step("one", Progress::Clock::time_point(10s));
  const std::string bar = progress.bar("compiling", Progress::Clock::time_point(10s), 80);
  CHECK(bar == "[######..................] 1/4  30.0 s left  compiling");
  CHECK(progress.bar("compiling", Progress::Clock::time_point(10s), 20).size() == 19);
  CHECK(progress.bar("compiling", Progress::Clock::time_point(10s), 0).size() == 1);
}

TEST_CASE("a bar is redrawn in place and cleared at the end", "[tools][progress]") {
  std::FILE* terminal = std::tmpfile();
  REQUIRE(terminal != nullptr);
  {
    Progress progress(terminal, ProgressStyle::kBar, 2, {});
    progress.step("one", Progress::Clock::time_point(1s));
    progress.keep("stays");
    progress.step("two", Progress::Clock::time_point(2s));
  }
  const std::string text = contents(terminal);
  CHECK(text.find('\n') == text.rfind('\n'));
  CHECK(text.find("\r\x1b[Kstays\n") != std::string::npos);
  CHECK(text.size() >= 4);
  CHECK(text.substr(text.size() - 4) == "\r\x1b[K");
  std::fclose(terminal);
}
