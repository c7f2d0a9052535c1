#include "specializer/own/family_files.hpp"

#include "tests/support/catch.hpp"

namespace {

using namespace broach;
using namespace broach::specializer;
using namespace broach::specializer::own;

constexpr std::string_view kMain = "broach-main.cu";

FamilyFiles files_of(std::vector<SourceFile> sources, std::vector<DeclaredPack> packs = {}) {
  return {"acme.norm", std::move(sources), std::move(packs)};
}

DeclaredPack pack_of(std::string name, std::vector<SourceFile> files,
                     std::optional<Vendor> only = {}) {
  return {HeaderPack::of_files(std::move(name), std::move(files)), only};
}

Result<std::vector<SourceFile>> closed(const FamilyFiles& files, std::string main,
                                       Vendor vendor = Vendor::kNvidia) {
  return close_over_includes(kMain, std::move(main), vendor, files);
}

std::vector<std::string> names_of(const Result<std::vector<SourceFile>>& sources) {
  if (!sources) return {sources.error().message};
  std::vector<std::string> names;
  for (const SourceFile& source : *sources) names.push_back(source.name);
  return names;
}

std::string bytes_of(const Result<std::vector<SourceFile>>& sources, std::string_view name) {
  REQUIRE(sources);
  for (const SourceFile& source : *sources) {
    if (source.name == name) return source.bytes;
  }
  return "no such file";
}

void check_message(const Result<std::vector<SourceFile>>& refused,
                   std::initializer_list<std::string_view> words) {
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kInvalidArgument);
  for (const std::string_view word : words) {
    INFO(refused.error().message << " has no " << word);
    CHECK(refused.error().message.find(word) != std::string::npos);
  }
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a family's include in quotes is looked for beside its file, then by its full name",
          "[specializer][own]") {
  const FamilyFiles files = files_of({{"norm.cuh", "#include \"detail/row.cuh\"\n"},
                                      {"detail/row.cuh",
                                       "#include \"vec.cuh\"\n"
                                       "#include \"../util.cuh\"\n"
                                       "#include \"norm.cuh\"\n"},
                                      {"detail/vec.cuh", "int vec;\n"},
                                      {"vec.cuh", "#error another\n"},
                                      {"util.cuh", "int util;\n"},
                                      {"unused.cuh", "#include <absent.h>\n"}});
  const auto sources = closed(files, "#include \"norm.cuh\"\n");
  CHECK(names_of(sources) ==
        Names{"broach-main.cu", "detail/row.cuh", "detail/vec.cuh", "norm.cuh", "util.cuh"});
  // Each is respelt, so that compilers that know files by spelling alone find the same one.
  CHECK(bytes_of(sources, kMain) == "#include <norm.cuh>\n");
  CHECK(bytes_of(sources, "detail/row.cuh") ==
        "#include <detail/vec.cuh>\n#include <util.cuh>\n#include <norm.cuh>\n");
  CHECK(bytes_of(sources, "util.cuh") == "int util;\n");
}

TEST_CASE("a directive is respelt over as many lines as it had", "[specializer][own]") {
  const FamilyFiles files = files_of({{"a.cuh", ""}});
  const auto sources = closed(files,
                              "#inc\\\nlude \"./a.cuh\" // kept\n"
                              "/* two\nlines */ # include /**/ \"a.cuh\"\n"
                              "// #include \"no.h\"\n"
                              "const char* s = R\"(\n#include \"no.h\"\n)\";\n");
  CHECK(bytes_of(sources, kMain) ==
        "#include <a.cuh>\\\n // kept\n"
        "/* two\nlines */ #include <a.cuh>\n"
        "// #include \"no.h\"\n"
        "const char* s = R\"(\n#include \"no.h\"\n)\";\n");
}

TEST_CASE("a family's include of what is declared nowhere is refused by file, line and name",
          "[specializer][own]") {
  const FamilyFiles files =
      files_of({{"norm.cuh", "#pragma once\n\n#if 0\n#include <cuda_fp16.h>\n#endif\n"}},
               {pack_of("cutlass", {})});
  for (const Vendor vendor : {Vendor::kNvidia, Vendor::kAmd, Vendor::kHost}) {
    check_message(closed(files, "#include \"norm.cuh\"\n", vendor),
                  {"acme.norm: norm.cuh line 4 includes <cuda_fp16.h>", "\"sources\"", "\"packs\"",
                   "no file of the packs \"cutlass\""});
  }
  for (const std::string name : {"\"/etc/passwd\"", "\"../norm.cuh\"", "<norm.cuh/>", "\"\"",
                                 "<a\\b.cuh>", "\"absent.cuh\""}) {
    check_message(closed(files, "\n#include " + name + "\n"), {"line 2 includes " + name});
  }
  check_message(closed(files, "#include HEADER(x)\n"), {"what a macro names, HEADER(x)"});
  check_message(closed(files, "#embed \"table.bin\"\n"), {"\"table.bin\""});
}

TEST_CASE("packs are searched in their order, a pack's own includes from beside the file first",
          "[specializer][own]") {
  const FamilyFiles files =
      files_of({{"norm.cuh", "#include <lib/top.h>\n"}, {"config.h", "int config;\n"}},
               {pack_of("first", {{"lib/top.h",
                                   "#include \"detail.h\"\n#include <lib/more.h>\n"
                                   "#include \"config.h\"\n"},
                                  {"lib/detail.h", "int first;\n"}}),
                pack_of("second", {{"lib/top.h", "#error second\n"},
                                   {"detail.h", "#error second\n"},
                                   {"lib/more.h", "int more;\n"}})});
  const auto sources = closed(files, "#include \"norm.cuh\"\n");
  CHECK(names_of(sources) ==
        Names{"broach-main.cu", "config.h", "lib/detail.h", "lib/more.h", "lib/top.h", "norm.cuh"});
  CHECK(bytes_of(sources, "lib/top.h") ==
        "#include <lib/detail.h>\n#include <lib/more.h>\n#include <config.h>\n");
  CHECK(bytes_of(sources, "norm.cuh") == "#include <lib/top.h>\n");
}

TEST_CASE("include_next goes on with the packs that follow", "[specializer][own]") {
  const FamilyFiles files = files_of(
      {}, {pack_of("wrap", {{"wrap/a.h", "#include_next <lib/a.h>\n#include_next <wrap/a.h>\n"}}),
           pack_of("lib", {{"lib/a.h", "int a;\n"}})});
  const auto sources = closed(files, "#include <wrap/a.h>\n");
  CHECK(bytes_of(sources, "wrap/a.h") ==
        "#include <lib/a.h>\n#error <wrap/a.h> is in no declared source or header pack\n");
}

TEST_CASE("what a pack includes and no declared tree holds stops a compiler that reaches it",
          "[specializer][own]") {
  const FamilyFiles files =
      files_of({}, {pack_of("lib", {{"lib.h",
                                     "#ifndef __CUDACC_RTC__\n#include <vector>\n#endif\n"
                                     "#include \"/usr/include/stdio.h\"\n"
                                     "#include \"../../etc/passwd\"\n"
                                     "#include LIB_CONFIG\n"}})});
  const auto sources = closed(files, "#include <lib.h>\n");
  CHECK(bytes_of(sources, "lib.h") ==
        "#ifndef __CUDACC_RTC__\n#error <vector> is in no declared source or header pack\n#endif\n"
        "#error \"/usr/include/stdio.h\" is in no declared source or header pack\n"
        "#error \"../../etc/passwd\" is in no declared source or header pack\n"
        "#include LIB_CONFIG\n");
}

TEST_CASE("a pack's include by a macro counts as all that the macro can come to",
          "[specializer][own]") {
  const FamilyFiles files = files_of(
      {},
      {pack_of("lib", {{"lib/top.h",
                        "#include <lib/config.h>\n"
                        "#  define LIB_TAG <LIB_ROOT/tag.h> // which\n"
                        "#include LIB_TAG\n"
                        "#define lib_lower <lib/never.h>\n"
                        "#include LIB_ABSENT\n"},
                       {"lib/config.h",
                        "#if ONE\n#define LIB_SYSTEM one\n#else\n"
                        "#define LIB_SYSTEM two\n#endif\n"
                        "#define LIB_SYSTEMS three\n"
                        "#define LIB_SYSTEM(x) four\n"
                        "#define LIB_ROOT lib/LIB_SYSTEM\n"},
                       {"lib/one/tag.h", "#include LIB_MORE\n#define LIB_MORE \"lib/more.h\"\n"},
                       {"lib/two/tag.h", "\n"},
                       {"lib/three/tag.h", "\n"},
                       {"lib/never.h", "\n"},
                       {"lib/more.h", "\n"}})});
  const auto sources = closed(files, "#include <lib/top.h>\n");
  CHECK(names_of(sources) == Names{"broach-main.cu", "lib/config.h", "lib/more.h", "lib/one/tag.h",
                                   "lib/top.h", "lib/two/tag.h"});
  CHECK(bytes_of(sources, "lib/top.h").find("#include LIB_TAG\n") != std::string::npos);
}

TEST_CASE("macros that stand for each other come to an end", "[specializer][own]") {
  std::string loop = "#define A0 A1\n#define A1 A0\n#define A1 <x.h>\n#include A0\n";
  for (int i = 0; i < 40; ++i) loop += "#define B B/B" + std::to_string(i) + "\n";
  loop += "#include B\n";
  const FamilyFiles files = files_of({}, {pack_of("lib", {{"a.h", loop}, {"x.h", "\n"}})});
  CHECK(names_of(closed(files, "#include <a.h>\n")) == Names{"broach-main.cu", "a.h", "x.h"});
}

TEST_CASE("a vendor's pack is seen by its plans alone", "[specializer][own]") {
  const FamilyFiles files = files_of({{"norm.cuh", "#include <cuda_fp16.h>\n"}},
                                     {pack_of("cuda", {{"cuda_fp16.h", "\n"}}, Vendor::kNvidia)});
  CHECK(names_of(closed(files, "#include \"norm.cuh\"\n")) ==
        Names{"broach-main.cu", "cuda_fp16.h", "norm.cuh"});
  const auto amd = closed(files, "#include \"norm.cuh\"\n", Vendor::kAmd);
  CHECK(names_of(amd) == Names{"broach-main.cu", "norm.cuh"});
  CHECK(bytes_of(amd, "norm.cuh").starts_with("#error <cuda_fp16.h>"));
}

TEST_CASE("the library's own headers are there for every family, and cannot be taken",
          "[specializer][own]") {
  const FamilyFiles files = files_of({{"ops.cuh", "#include \"common/ops.cuh\"\n"}});
  const auto gpu = closed(files, "#include \"ops.cuh\"\n");
  REQUIRE(gpu);
  CHECK(bytes_of(gpu, "common/ops.cuh") == embedded_sources().find("common/ops.cuh")->bytes);
  for (const std::string& name : names_of(gpu)) CHECK_FALSE(name.starts_with("host/"));

  const FamilyFiles both =
      files_of({{"mine.cuh", "#include \"common/exp.cuh\"\n"}, {"common/ops.cuh", "int ops;\n"}});
  check_message(closed(both, "#include \"mine.cuh\"\n#include \"common/ops.cuh\"\n"),
                {"\"common/ops.cuh\" is a file of", "the sources of acme.norm",
                 "the library's own headers", "rename one"});
}

TEST_CASE("standard headers that kernels use have stand-ins, unless a family has its own",
          "[specializer][own]") {
  const FamilyFiles files = files_of({}, {pack_of("lib", {{"float.h", "int mine;\n"}})});
  const auto sources = closed(files, "#include <cstdint>\n#include <float.h>\n");
  CHECK(names_of(sources) == Names{"broach-main.cu", "cstdint", "float.h", "limits.h", "stdint.h"});
  CHECK(bytes_of(sources, "float.h") == "int mine;\n");
  check_message(closed(files, "#include <vector>\n"),
                {"<vector>", "no file of the packs \"lib\";"});
}

TEST_CASE("files of two trees cannot have one name in a plan", "[specializer][own]") {
  const FamilyFiles files =
      files_of({{"vec.h", "int own;\n"}}, {pack_of("lib", {{"vec.h", "int pack;\n"}})});
  check_message(closed(files, "#include \"vec.h\"\n#include <vec.h>\n"),
                {"\"vec.h\"", "the sources of acme.norm", "header pack \"lib\""});
  CHECK(names_of(closed(files, "#include <vec.h>\n")) == Names{"broach-main.cu", "vec.h"});
}

TEST_CASE("a closure has bounds", "[specializer][own]") {
  std::vector<SourceFile> many;
  std::string main;
  for (std::size_t i = 0; i <= kMaxPlanFiles; ++i) {
    const std::string name = std::to_string(i) + ".h";
    many.push_back({name, "\n"});
    main += "#include <" + name + ">\n";
  }
  const auto refused = closed(files_of({}, {pack_of("lib", std::move(many))}), main);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kLimitExceeded);
  CHECK(refused.error().message.find("4000 files") != std::string::npos);
}
