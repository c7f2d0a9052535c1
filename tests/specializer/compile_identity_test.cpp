#include <algorithm>
#include <fstream>
#include <regex>

#include "specializer/compile/elf_build_id.hpp"
#include "specializer/compile/identity.hpp"
#include "specializer/compile/search.hpp"
#include "tests/specializer/compile_support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"

namespace {

using namespace broach;
using namespace broach::specializer;
using namespace broach::test;

std::vector<Target> each_kind() { return {nvidia("sm_90a"), amd("gfx90a"), host()}; }

}  // namespace

TEST_CASE("NVRTC's identity has a build number and the version that its cubins state",
          "[specializer][identity]") {
  Compilers compilers(compilers_options());
  const auto identity = compilers.identity(nvidia("sm_90a"));
  if (!identity) BROACH_SKIP(identity.error().message);
  std::smatch parts;
  REQUIRE(
      std::regex_match(identity->key_text, parts, std::regex(R"(nvrtc (\d+\.\d+\.\d+) CL-(\d+))")));
  const auto output = compilers.compile(tiny_plan(nvidia("sm_90a")));
  REQUIRE(output);
  // An independent witness: recent ptxas signs the cubin it writes.
  const std::string bytes(reinterpret_cast<const char*>(output->binary.data()),
                          output->binary.size());
  if (!contains(bytes, "Cuda compilation tools")) BROACH_SKIP("this NVRTC does not sign cubins");
  CHECK(contains(bytes, "V" + parts[1].str()));
}

TEST_CASE("an identity names no path and is what a compile reports", "[specializer][identity]") {
  Compilers compilers(compilers_options());
  for (const Target& target : each_kind()) {
    const auto identity = compilers.identity(target);
    if (!identity) continue;
    INFO(identity->key_text);
    CHECK_FALSE(contains(identity->key_text, "/"));
    CHECK(contains(identity->path, "/"));
    const auto output = compilers.compile(tiny_plan(target));
    REQUIRE(output);
    CHECK(output->compiler.key_text == identity->key_text);
  }
  SUCCEED("those compilers that are here");
}

TEST_CASE("a remembered identity starts no worker", "[specializer][identity]") {
  for (const Target& target : each_kind()) {
    CountingMemo memo;
    std::string key_text;
    {
      Compilers compilers(compilers_options(), memo.memo());
      const auto identity = compilers.identity(target);
      if (!identity) continue;
      key_text = identity->key_text;
    }
    INFO(key_text);
    REQUIRE(memo.values.size() == 1);
    CHECK_FALSE(contains(memo.values.begin()->first, "//"));
    Compilers compilers(compilers_options(), memo.memo());
    const auto identity = compilers.identity(target);
    REQUIRE(identity);
    CHECK(identity->key_text == key_text);
    CHECK(memo.found == 1);
    CHECK(worker_pids().empty());
    // And the compile that follows agrees with it.
    CHECK(compilers.compile(tiny_plan(target)));
  }
}

TEST_CASE("a stale identity is corrected by the first compile, which says who compiled",
          "[specializer][identity]") {
  for (const Target& target : each_kind()) {
    CountingMemo memo;
    std::string key_text;
    {
      Compilers compilers(compilers_options(), memo.memo());
      const auto identity = compilers.identity(target);
      if (!identity) continue;
      key_text = identity->key_text;
    }
    std::string& value = memo.values.begin()->second;
    const auto at = value.find(key_text);
    REQUIRE(at != std::string::npos);
    value.replace(at, key_text.size(), "another compiler");
    Compilers compilers(compilers_options(), memo.memo());
    REQUIRE(compilers.identity(target));
    CHECK(compilers.identity(target)->key_text == "another compiler");
    const auto output = compilers.compile(tiny_plan(target));
    REQUIRE(output);
    CHECK(output->compiler.key_text ==
          key_text);  // Not what a key was made with: who files it sees.
    CHECK(compilers.identity(target)->key_text == key_text);
    CHECK(contains(memo.values.begin()->second, key_text));
  }
}

TEST_CASE("a memo that is damaged or speaks of other files is not believed",
          "[specializer][identity]") {
  CountingMemo memo;
  {
    Compilers compilers(compilers_options(), memo.memo());
    if (!compilers.identity(host())) BROACH_SKIP("no host compiler");
  }
  std::string& value = memo.values.begin()->second;
  const std::string good = value;
  const std::string replacement = GENERATE("{", "[1, 2]", "{\"key_text\": 1}", "");
  if (!replacement.empty()) {
    value = replacement;
  } else {  // A companion of another build.
    const auto at = value.find("\"build_id\":\"");
    REQUIRE(at != std::string::npos);
    char& digit = value[at + 12];
    digit = digit == '0' ? '1' : '0';
  }
  Compilers compilers(compilers_options(), memo.memo());
  REQUIRE(compilers.identity(host()));
  CHECK(worker_pids().size() == 1);
  CHECK(value == good);
}

TEST_CASE("a compiler without build ids is asked every time", "[specializer][identity]") {
  Compilers plain(compilers_options());
  const auto real = plain.identity(host());
  if (!real) BROACH_SKIP(real.error().message);
  TempDir dir;
  auto options = compilers_options();
  options.host_compiler = dir.path() / "g++";
  std::ofstream(options.host_compiler) << "#!/bin/sh\nexec " << real->path << " \"$@\"\n";
  std::filesystem::permissions(options.host_compiler, std::filesystem::perms::owner_all);
  CountingMemo memo;
  Compilers compilers(options, memo.memo());
  REQUIRE(compilers.identity(host()));
  CHECK(memo.values.empty());
  CHECK(compilers.compile(tiny_plan(host())));
}

TEST_CASE("build ids are read from files as the loader maps them", "[specializer][identity]") {
  for (const auto& image : rtc::loaded_images()) {
    if (!image.path.starts_with('/')) continue;
    const auto id = rtc::build_id_of(image.path);
    REQUIRE(id);
    CHECK(*id == image.build_id);
  }
  TempDir dir;
  const auto file = dir.path() / "file";
  CHECK(rtc::build_id_of(file).error().code == ErrorCode::kIo);
  std::ofstream(file) << "no ELF file, but one that is longer than an ELF header has to be, surely";
  CHECK(rtc::build_id_of(file).error().code == ErrorCode::kDamaged);
}

TEST_CASE("status lists every compiler with what was tried", "[specializer][identity]") {
  TempDir empty;
  auto options = compilers_options();
  options.search_path = empty.path().string();
  options.nvrtc = empty.path() / "libnvrtc.so";
  Compilers compilers(options);
  const auto all = compilers.status();
  REQUIRE(all.size() == 3);
  for (const CompilerStatus& status : all) {
    CHECK_FALSE(status.tried.empty());
    if (!status.found) CHECK_FALSE(status.why.empty());
  }
  CHECK_FALSE(all[0].found);
  CHECK_FALSE(all[2].found);
}
