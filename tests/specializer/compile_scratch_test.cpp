#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include "specializer/compile/scratch.hpp"
#include "specializer/compile/trouble.hpp"
#include "specializer/compile/unique_fd.hpp"
#include "tests/specializer/compile_support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"

namespace {

using namespace broach;
using namespace broach::specializer;
using namespace broach::test;

namespace fs = std::filesystem;

/// A directory as a worker that was killed leaves it, last changed an hour ago.
fs::path make_left(const fs::path& parent, const std::string& name) {
  const fs::path path = parent / name;
  fs::create_directory(path);
  std::ofstream(path / "out.so") << "half of a shared object";
  const std::array<timespec, 2> hour_ago = {timespec{std::time(nullptr) - 3600, 0},
                                            timespec{std::time(nullptr) - 3600, 0}};
  ::utimensat(AT_FDCWD, path.c_str(), hour_ago.data(), 0);
  return path;
}

}  // namespace

TEST_CASE("a scratch directory is private, in the first place that works, and goes with its owner",
          "[specializer][compile]") {
  TempDir dir;
  const std::array<fs::path, 3> parents = {"/proc", dir.path() / "missing", dir.path()};
  fs::path path;
  {
    auto scratch = Scratch::create(parents);
    REQUIRE(scratch);
    path = scratch->path();
    CHECK(path.parent_path() == dir.path());
    CHECK(fs::status(path).permissions() == fs::perms::owner_all);
    std::ofstream(path / "file") << "x";
  }
  CHECK_FALSE(fs::exists(path));
  const auto none = Scratch::create(std::span(parents).first(2));
  REQUIRE_FALSE(none);
  CHECK(none.error().code == ErrorCode::kIo);
  CHECK(contains(none.error().message, "/proc"));
  CHECK(contains(none.error().message, "TMPDIR"));
}

TEST_CASE("what workers left behind is swept, and nothing that is in use, young or another's",
          "[specializer][compile]") {
  TempDir dir;
  const fs::path left = make_left(dir.path(), "broach-scratch-aaaaaa");
  const fs::path used = make_left(dir.path(), "broach-scratch-bbbbbb");
  const fs::path other = make_left(dir.path(), "somebody-elses");
  fs::create_directory(dir.path() / "broach-scratch-cccccc");
  fs::create_directory_symlink(other, dir.path() / "broach-scratch-dddddd");
  const rtc::UniqueFd held(::open(used.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  REQUIRE(::flock(held.get(), LOCK_EX | LOCK_NB) == 0);
  CHECK(sweep_scratch(dir.path(), 600) == 1);
  CHECK_FALSE(fs::exists(left));
  CHECK(fs::exists(used / "out.so"));
  CHECK(fs::exists(other / "out.so"));
  CHECK(fs::exists(dir.path() / "broach-scratch-cccccc"));
}

TEST_CASE("a living worker's directory is not swept, however old it looks",
          "[specializer][compile]") {
  TempDir dir;
  auto options = compilers_options();
  options.scratch = {dir.path()};
  Compilers compilers(options);
  if (const auto identity = compilers.identity(host()); !identity) {
    BROACH_SKIP(identity.error().message);
  }
  CHECK(sweep_scratch(dir.path(), -1) == 0);
  CHECK(compilers.compile(tiny_plan(host())));
}

TEST_CASE("a log tells the machine's troubles from the source's", "[specializer][compile]") {
  using rtc::Trouble;
  using rtc::trouble_in;
  CHECK(trouble_in("") == Trouble::kNone);
  CHECK(trouble_in("main.cu:3:1: error: 'x' was not declared in this scope\n") == Trouble::kNone);
  CHECK(trouble_in("/tmp/cc1.s: No space left on device\n") == Trouble::kMachine);
  CHECK(trouble_in("c++: fatal error: cannot execute 'cc1plus': vfork: Resource temporarily "
                   "unavailable\ncompilation terminated.\n") == Trouble::kMachine);
  CHECK(trouble_in("as: BFD error: File too large") == Trouble::kMachine);
  CHECK(trouble_in("cc1plus: out of memory allocating 65536 bytes\n") == Trouble::kMemory);
  CHECK(trouble_in("write: No space left on device\nterminate: std::bad_alloc") ==
        Trouble::kMemory);
  // A line of the source that a compiler quotes.
  CHECK(trouble_in("a.cu:3: error: no\n    3 | say(\"out of memory\");\n") == Trouble::kNone);
}

TEST_CASE("closing the compilers ends a compile that another thread waits for, within a second",
          "[specializer][compile]") {
  TempDir dir;
  auto options = compilers_options();
  options.host_compiler = dir.path() / "c++";
  const fs::path began = dir.path() / "began";
  bool hangs_at_once = false;
  SECTION("in the middle of a compile") {}
  SECTION("while its compiler is opened") { hangs_at_once = true; }
  const std::string hang = "echo > " + began.string() + "; exec sleep 1000";
  std::ofstream(options.host_compiler)
      << "#!/bin/sh\ncase \"$1\" in\n--version) "
      << (hangs_at_once ? hang : std::string("echo 'fake 1.0'"))
      << " ;;\n-dumpmachine) echo x86_64-linux-gnu ;;\n-print-prog-name*) echo cc1plus ;;\n*) "
      << hang << " ;;\nesac\n";
  fs::permissions(options.host_compiler, fs::perms::owner_all);
  Compilers compilers(options);
  std::optional<Result<CompileOutput>> output;
  std::thread waiter([&] { output = compilers.compile(tiny_plan(host())); });
  wait_until([&] { return fs::exists(began); });
  const auto start = std::chrono::steady_clock::now();
  compilers.close();
  waiter.join();
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(1));
  REQUIRE_FALSE(*output);
  CHECK(output->error().code == ErrorCode::kIo);
  CHECK(contains(output->error().message, "being closed"));
  CHECK_FALSE(compilers.compile(tiny_plan(host())));
  CHECK(worker_pids().empty());
}
