// Compiles on a machine in trouble: what is the machine's doing is told apart from the source's.
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <functional>

#include "tests/specializer/compile_support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"

namespace {

using namespace broach;
using namespace broach::specializer;
using namespace broach::test;

constexpr int kSkipped = 77;
constexpr int kCapSysResource = 24;

/// Runs `body` in a child process; its exit status, kSkipped where the machine lacks what it needs.
int in_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

/// Mounts a tmpfs for this process and its children alone.
bool mount_small(const std::filesystem::path& where, const char* size) {
  if (::unshare(CLONE_NEWNS) != 0 && ::unshare(CLONE_NEWNS | CLONE_NEWUSER) != 0) return false;
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  return ::mount("none", where.c_str(), "tmpfs", 0, size) == 0;
}

/// 0 when a compile of the target ends with the error of a machine in trouble.
int compile_in_trouble(const CompilersOptions& options, const Target& target) {
  Compilers compilers(options);
  const auto output = compilers.compile(tiny_plan(target));
  if (output) return 2;
  if (output.error().code == ErrorCode::kCompilerMissing) return kSkipped;
  std::fprintf(stderr, "%s: %s\n%s", std::string(name_of(output.error().code)).c_str(),
               output.error().message.c_str(), output.error().detail.c_str());
  return output.error().code == ErrorCode::kIo ? 0 : 1;
}

void write_program(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file) << text;
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
}

/// A host compiler by name that does `body` when it is asked to compile.
void write_compiler(const std::filesystem::path& file, const std::string& body) {
  write_program(file,
                "#!/bin/sh\ncase \"$1\" in\n--version) echo 'fake 1.0' ;;\n"
                "-dumpmachine) echo x86_64-linux-gnu ;;\n"
                "-print-prog-name*) echo cc1plus ;;\n*) " +
                    body + " ;;\nesac\n");
}

}  // namespace

TEST_CASE("a compile whose scratch directory is full is the machine's trouble",
          "[specializer][compile][multiprocess]") {
  TempDir dir;
  auto options = compilers_options();
  options.scratch = {dir.path()};
  const char* size = "size=16k";
  SECTION("of bytes") {}
  SECTION("of inodes") { size = "size=64m,nr_inodes=4"; }
  for (const Target& target : {host(), amd("gfx90a")}) {
    CAPTURE(target.name, size);
    const int status = in_child([&] {
      if (!mount_small(dir.path(), size)) return kSkipped;
      auto own = options;
      if (target.vendor == Vendor::kAmd) own.hiprtc_prefix = BROACH_TEST_HIPRTC_PREFIX;
      return compile_in_trouble(own, target);
    });
    if (status != kSkipped) CHECK(status == 0);
  }
}

TEST_CASE("a compile without descriptors is the machine's trouble",
          "[specializer][compile][multiprocess]") {
  const int status = in_child([] {
    rlimit few{};
    ::getrlimit(RLIMIT_NOFILE, &few);
    few.rlim_cur = 5;  // The three streams, a socket and one more.
    Compilers compilers(compilers_options());
    if (::setrlimit(RLIMIT_NOFILE, &few) != 0) return kSkipped;
    const auto output = compilers.compile(tiny_plan(host()));
    if (output) return 2;
    return output.error().code == ErrorCode::kIo ? 0 : 1;
  });
  if (status != kSkipped) CHECK(status == 0);
}

TEST_CASE("limits that the process inherited bound its compiles and do not refuse them",
          "[specializer][compile][multiprocess]") {
  const int status = in_child([] {
    rlimit inherited{};
    inherited.rlim_cur = inherited.rlim_max = rlim_t{4'000'000} << 10;
    if (::setrlimit(RLIMIT_AS, &inherited) != 0) return kSkipped;
    // Whoever may raise limits is not bound by them; without this root would be.
    if (::geteuid() == 0 && ::prctl(PR_CAPBSET_DROP, kCapSysResource) != 0) return kSkipped;
    Compilers compilers(compilers_options());
    const auto output = compilers.compile(tiny_plan(host()));
    if (output) return 0;
    std::fprintf(stderr, "%s\n", output.error().message.c_str());
    return output.error().code == ErrorCode::kCompilerMissing ? kSkipped : 1;
  });
  if (status == kSkipped) BROACH_SKIP("no host compiler, or no way to set limits");
  CHECK(status == 0);
}

TEST_CASE("NVRTC asks for no scratch directory, and who needs one names those tried",
          "[specializer][compile]") {
  auto options = compilers_options();
  options.scratch = {"/proc"};  // No one can make a directory there.
  Compilers compilers(options);
  if (Compilers(compilers_options()).identity(nvidia("sm_90a"))) {
    const auto output = compilers.compile(tiny_plan(nvidia("sm_90a")));
    INFO((output ? std::string() : output.error().message));
    CHECK(output);
  }
  const auto refused = compilers.compile(tiny_plan(host()));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kIo);
  CHECK(contains(refused.error().message, "/proc"));
}

TEST_CASE("a compiler that prints without end is stopped and costs little memory",
          "[specializer][compile]") {
  TempDir dir;
  auto options = compilers_options();
  options.time_limit_s = 20;
  options.host_compiler = dir.path() / "c++";
  const char* stream = "";
  SECTION("on standard output") {}
  SECTION("on standard error") { stream = " >&2"; }
  write_compiler(options.host_compiler, std::string("exec yes 'warning: on and on'") + stream);
  Compilers compilers(options);
  const auto output = compilers.compile(tiny_plan(host()));
  REQUIRE_FALSE(output);
  INFO(output.error().message);
  CHECK(output.error().code == ErrorCode::kLimitExceeded);
  CHECK(contains(output.error().message, "printed more than"));
  CHECK(contains(output.error().detail, "warning: on and on"));
  CHECK(output.error().detail.size() < (std::size_t{1} << 20));
  CHECK(worker_pids().size() == 1);  // The worker goes on.
}
