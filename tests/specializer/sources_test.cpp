#include "specializer/sources.hpp"

#include "tests/support/catch.hpp"

namespace broach::specializer {
namespace {

constexpr EmbeddedFile kFiles[] = {
    {"common/exp.cuh", "#include \"common/ops.cuh\"\n"},
    {"common/ops.cuh", "  #  include \"host/shim.hpp\"\n#include \"common/exp.cuh\"\n"},
    {"host/shim.hpp", "#include <cmath>\n"},
    {"tiles/unused.cuh", "\n"},
};

std::vector<std::string> names_of(const std::vector<SourceFile>& sources) {
  std::vector<std::string> names;
  for (const SourceFile& source : sources) names.push_back(source.name);
  return names;
}

}  // namespace

TEST_CASE("only quoted includes at a line's start are includes", "[specializer][sources]") {
  const auto names = quoted_includes(
      "#include \"a.h\"\n#include <b.h>\n \t#\tinclude\t\"c d.h\"\n// #include \"no.h\"\n"
      "int x; #include \"no\"\n#includes\n#include \"open\n#pragma once\n#include \"last.h\"");
  CHECK(names == std::vector<std::string_view>{"a.h", "c d.h", "last.h"});
}

TEST_CASE("a plan's sources are the main one, then all it includes by name",
          "[specializer][sources]") {
  const std::string main = "#include \"common/exp.cuh\"\nint x;\n";
  const auto gpu = close_over_includes("main.cu", main, Vendor::kNvidia, kFiles);
  REQUIRE(gpu);
  CHECK(names_of(*gpu) == std::vector<std::string>{"main.cu", "common/exp.cuh", "common/ops.cuh"});
  CHECK(gpu->front().bytes == main);
  const auto host = close_over_includes("main.cu", main, Vendor::kHost, kFiles);
  REQUIRE(host);
  CHECK(names_of(*host) ==
        std::vector<std::string>{"main.cu", "common/exp.cuh", "common/ops.cuh", "host/shim.hpp"});
}

TEST_CASE("an include that is not embedded is named with the file that has it",
          "[specializer][sources]") {
  const auto sources =
      close_over_includes("main.cu", "#include \"ops.cuh\"\n", Vendor::kNvidia, kFiles);
  REQUIRE_FALSE(sources);
  CHECK(sources.error().message.find("main.cu includes \"ops.cuh\"") != std::string::npos);
}

}  // namespace broach::specializer
