#include "specializer/compile/flatten.hpp"

#include "tests/specializer/compile_support.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace broach;
using namespace broach::specializer;
using namespace broach::test;
using rtc::flatten;
using rtc::Source;

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("a header is written once and keeps its own line numbers", "[specializer][flatten]") {
  const std::vector<Source> sources = {
      {"main.cu", "#include \"a.cuh\"\n#include \"b.cuh\"\nint main_line;\n"},
      {"a.cuh", "#pragma once\n#include \"b.cuh\"\nint a;\n"},
      {"b.cuh", "#pragma once\nint b;"}};
  const auto text = flatten(sources);
  REQUIRE(text);
  CHECK(count(*text, "int b;") == 1);
  CHECK(count(*text, "int a;") == 1);
  CHECK(contains(*text, "#line 1 \"b.cuh\"\n\nint b;\n#endif\n#line 3 \"a.cuh\"\nint a;\n"));
  CHECK(contains(*text, "#line 3 \"main.cu\"\nint main_line;\n"));
  CHECK_FALSE(contains(*text, "#include"));
}

TEST_CASE("what only looks like an include stays as it is", "[specializer][flatten]") {
  const std::string body =
      "/* \n#include \"none.cuh\"\n*/ // \"\n"
      "const char* a = R\"x(\n#include \"none.cuh\"\n)x\";\n"
      "const char* b = \"/*\"; char c = '\"'; long d = 1'000'000;\n"
      "// /*\n"
      "#include <cstdint>\n";
  const auto text = flatten(std::vector<Source>{{"main.cu", body}});
  REQUIRE(text);
  CHECK(contains(*text, body));
}

TEST_CASE("a missing header names the line that asks for it", "[specializer][flatten]") {
  const auto text = flatten(std::vector<Source>{{"main.cu", "\n  #  include \"gone.cuh\"\n"}});
  REQUIRE_FALSE(text);
  CHECK(text.error().code == ErrorCode::kCompileFailed);
  CHECK(contains(text.error().message, "main.cu:2"));
  CHECK(contains(text.error().message, "gone.cuh"));
}

TEST_CASE("a header under a condition that fails is there for who includes it later",
          "[specializer][flatten]") {
  const std::vector<Source> sources = {
      {"main.cu", "#ifdef NEVER\n#include \"a.cuh\"\n#endif\n#include \"a.cuh\"\nint c = a;\n"},
      {"a.cuh", "#ifndef A\n#define A\n#include \"main.cu\"\nconst int a = 1;\n#endif\n"}};
  // The cycle through main.cu ends at a.cuh, which is open then.
  const auto text = flatten(std::vector<Source>{
      sources[0],
      {"a.cuh", "#ifndef A\n#define A\n#include \"b.cuh\"\nconst int a = b;\n#endif\n"},
      {"b.cuh", "#pragma once\n#include \"a.cuh\"\nconst int b = 1;\n"}});
  REQUIRE(text);
  CHECK(count(*text, "const int a") == 2);
  auto options = compilers_options();
  Compilers compilers(options);
  if (!compilers.identity(host())) BROACH_SKIP("no host compiler");
  Plan plan = tiny_plan(host());
  plan.sources = {{"main.cu", *text}};
  const auto output = compilers.compile(plan);
  INFO((output ? "" : output.error().detail));
  CHECK(output);
}

TEST_CASE("headers that multiply under conditions are stopped by a bound",
          "[specializer][flatten]") {
  std::vector<Source> sources = {{"main.cu", "#if 1\n#include \"0\"\n#endif\n"}};
  for (int i = 0; i < 40; ++i) {
    const std::string next = "#include \"" + std::to_string(i + 1) + "\"\n";
    const std::string other = "#include \"" + std::to_string(i + 2) + "\"\n";
    sources.push_back({std::to_string(i), next + other + std::string(1000, ' ') + "\n"});
  }
  sources.push_back({"40", ""});
  sources.push_back({"41", ""});
  const auto text = flatten(sources);
  REQUIRE_FALSE(text);
  CHECK(contains(text.error().message, "bytes"));
}
