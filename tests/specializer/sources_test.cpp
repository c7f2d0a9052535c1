#include "specializer/sources.hpp"

#include "tests/support/catch.hpp"

namespace broach::specializer {
namespace {

constexpr EmbeddedFile kFiles[] = {
    {"common/exp.cuh", "#include \"common/ops.cuh\"\n"},
    {"common/ops.cuh", "  #  include \"host/shim.hpp\"\n#include \"common/exp.cuh\"\n"},
    {"host/shim.hpp", "int shim;\n"},
    {"tiles/unused.cuh", "\n"},
};

std::vector<std::string> names_of(const std::vector<SourceFile>& sources) {
  std::vector<std::string> names;
  for (const SourceFile& source : sources) names.push_back(source.name);
  return names;
}

}  // namespace

TEST_CASE("includes are found however they are spelt", "[specializer][sources]") {
  using Form = Include::Form;
  const auto includes = includes_of(
      "#include \"a.h\"\n#include <b.h>\n \t#\tinclude\t\"c d.h\"\n// #include \"no.h\"\n"
      "int x; #include \"no\"\n#includes\n#include \"open\n#pragma once\n"
      "%:include <digraph.h>\n#/* between */include/**/<commented.h>\n#inc\\\nlude <spliced.h>\r\n"
      "#include NAME\n#import <import.h>\n#include_next <next.h>\n?\?=include <trigraph.h>\n"
      "#include \"last.h\"");
  CHECK(includes == std::vector<Include>{{Form::kQuoted, "a.h"},
                                         {Form::kAngle, "b.h"},
                                         {Form::kQuoted, "c d.h"},
                                         {Form::kComputed, "\"open"},
                                         {Form::kAngle, "digraph.h"},
                                         {Form::kAngle, "commented.h"},
                                         {Form::kAngle, "spliced.h"},
                                         {Form::kComputed, "NAME"},
                                         {Form::kAngle, "import.h"},
                                         {Form::kAngle, "next.h"},
                                         {Form::kAngle, "trigraph.h"},
                                         {Form::kQuoted, "last.h"}});
}

TEST_CASE("a plan's sources are the main one, then all it includes by name",
          "[specializer][sources]") {
  const std::string main = "#include \"common/exp.cuh\"\nint x;\n";
  const auto gpu = close_over_includes("main.cu", main, Vendor::kNvidia, EmbeddedSources(kFiles));
  REQUIRE(gpu);
  CHECK(names_of(*gpu) == std::vector<std::string>{"main.cu", "common/exp.cuh", "common/ops.cuh"});
  CHECK(gpu->front().bytes == main);
  const auto host = close_over_includes("main.cu", main, Vendor::kHost, EmbeddedSources(kFiles));
  REQUIRE(host);
  CHECK(names_of(*host) ==
        std::vector<std::string>{"main.cu", "common/exp.cuh", "common/ops.cuh", "host/shim.hpp"});
}

TEST_CASE("an include that is not embedded is named with the file that has it",
          "[specializer][sources]") {
  const auto sources = close_over_includes("main.cu", "#include \"ops.cuh\"\n", Vendor::kNvidia,
                                           EmbeddedSources(kFiles));
  REQUIRE_FALSE(sources);
  CHECK(sources.error().message.find("main.cu includes \"ops.cuh\"") != std::string::npos);
}

TEST_CASE("a system header is refused by its name for every vendor", "[specializer][sources]") {
  const Vendor vendor = GENERATE(Vendor::kNvidia, Vendor::kAmd, Vendor::kHost);
  const std::string include = GENERATE("<cuda_fp16.h>", "<common/ops.cuh>", "HEADER");
  const auto refused =
      close_over_includes("main.cu", "#include " + include + "\n", vendor, EmbeddedSources(kFiles));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("main.cu includes " + include) != std::string::npos);

  // Not only in the main source.
  constexpr EmbeddedFile kInner[] = {{"inner.cuh", "#if 0\n#include <cuda_fp16.h>\n#endif\n"}};
  const auto inner =
      close_over_includes("main.cu", "#include \"inner.cuh\"\n", vendor, EmbeddedSources(kInner));
  REQUIRE_FALSE(inner);
  CHECK(inner.error().message.find("inner.cuh includes <cuda_fp16.h>") != std::string::npos);
}

}  // namespace broach::specializer
