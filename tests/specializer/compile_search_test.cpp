#include "specializer/compile/search.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "specializer/compilers.hpp"
#include "tests/specializer/compile_support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"

namespace broach::specializer {
namespace {

using broach::test::TempDir;
namespace fs = std::filesystem;

constexpr uid_t kStranger = 12345;

void give(const fs::path& path) { REQUIRE(lchown(path.c_str(), kStranger, kStranger) == 0); }

void write_program(const fs::path& path) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << "#!/bin/sh\nexit 3\n";
  fs::permissions(path, fs::perms(0755));
}

std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::array<char, 4096> bytes{};
  while (std::size_t got = fread(bytes.data(), 1, bytes.size(), pipe)) {
    text.append(bytes.data(), got);
  }
  CHECK(pclose(pipe) == 0);
  return text;
}

}  // namespace

TEST_CASE("a worker that another user put beside a program is not run", "[specializer][trust]") {
  if (geteuid() != 0) BROACH_SKIP("giving a file away needs root");
  const TempDir dir;
  fs::permissions(dir.path(), fs::perms(0755));
  // As an engine that runs from a folder of /tmp, beside which anyone can make another.
  const fs::path program = dir.path() / "x" / "engine";
  fs::create_directory(program.parent_path());
  fs::copy_file(BROACH_SEARCH_PROBE, program);
  const fs::path planted = dir.path() / "libexec" / "broach" / "broach-rtc";
  write_program(planted);
  CHECK(output_of(program.string()).starts_with("uses " + program.parent_path().string()));
  SECTION("the file") { give(planted); }
  SECTION("its directory") { give(planted.parent_path()); }
  SECTION("the directory above it") { give(dir.path() / "libexec"); }
  const std::string said = output_of(program.string());
  CHECK(said.find("uses " + program.parent_path().string()) == std::string::npos);
  CHECK(said.find("refuses compile worker") != std::string::npos);
  CHECK(said.find("owned by user 12345") != std::string::npos);
}

TEST_CASE("a worker in a place that others can write is not run, and that is said",
          "[specializer][trust]") {
  const TempDir dir;
  const fs::path worker = dir.path() / "libexec" / "broach-rtc";
  write_program(worker);
  CompilersOptions options = broach::test::compilers_options();
  options.worker = worker;
  REQUIRE(find_worker(options).files.size() == 1);
  fs::permissions(worker.parent_path(), fs::perms(0777));
  const auto found = find_worker(options);
  CHECK(found.files.empty());
  REQUIRE(found.refused.size() == 1);
  CHECK(found.refused[0].find("chmod go-w") != std::string::npos);
  const auto refused = Compilers(options).identity(broach::test::host());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kCompilerMissing);
  CHECK(refused.error().message.find("chmod go-w") != std::string::npos);
}

TEST_CASE("a compiler that another user could have put on the path is passed over",
          "[specializer][trust]") {
  if (geteuid() != 0) BROACH_SKIP("giving a file away needs root");
  const TempDir dir;
  const fs::path theirs = dir.path() / "theirs" / "c++";
  const fs::path ours = dir.path() / "ours" / "c++";
  write_program(theirs);
  write_program(ours);
  give(theirs.parent_path());
  CompilersOptions options;
  options.search_path = theirs.parent_path().string() + ":" + ours.parent_path().string();
  const auto found = find_compiler(CompilerKind::kHost, options, Extent::kFirst);
  REQUIRE(found.files.size() == 1);
  CHECK(found.files[0] == ours);
  CHECK(found.refused.size() == 1);
  // Who names one has chosen it.
  options.host_compiler = theirs;
  CHECK(find_compiler(CompilerKind::kHost, options, Extent::kFirst).files.size() == 1);
}

TEST_CASE("the loader of a prefix is held to the rule of programs", "[specializer][trust]") {
  const TempDir dir;
  const fs::path loader = dir.path() / "lib64" / "ld-linux-x86-64.so.2";
  write_program(loader);
  CHECK(prefix_command(dir.path()));
  fs::permissions(loader, fs::perms(0777));
  const auto refused = prefix_command(dir.path());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("chmod go-w") != std::string::npos);
}

}  // namespace broach::specializer
