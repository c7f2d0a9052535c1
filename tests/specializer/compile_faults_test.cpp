#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include "tests/specializer/compile_support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"

namespace {

using namespace broach;
using namespace broach::specializer;
using namespace broach::test;

/// A host plan that takes the compiler minutes: constant evaluation without an end in sight.
Plan endless_plan() {
  Plan plan = tiny_plan(host());
  plan.options.push_back("-fconstexpr-ops-limit=2000000000000");
  plan.options.push_back("-fconstexpr-loop-limit=2000000000");
  plan.sources[0].bytes =
      "constexpr long spin() { long s = 0; for (long i = 0; i < 1000000000; ++i) s += i % 7; "
      "return s; }\nconstexpr long kSpun = spin();\nextern \"C\" long spun() { return kSpun; }\n";
  return plan;
}

void write_program(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file) << text;
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
}

/// Whether a process of a group still runs.
bool group_runs(pid_t group) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream stat(entry.path() / "stat");
    std::string pid;
    std::string name;
    std::string state;
    pid_t parent = 0;
    pid_t its_group = 0;
    if (stat >> pid >> name >> state >> parent >> its_group && its_group == group && state != "Z") {
      return true;
    }
  }
  return false;
}

}  // namespace

TEST_CASE("a compile over the time limit is stopped with its whole process group",
          "[specializer][compile]") {
  auto options = compilers_options();
  options.time_limit_s = 1;
  Compilers compilers(options);
  auto identity = compilers.identity(host());
  // On a busy machine anything may take a second.
  while (!identity && identity.error().code == ErrorCode::kTimedOut) {
    identity = compilers.identity(host());
  }
  if (!identity) BROACH_SKIP(identity.error().message);
  const auto workers = worker_pids();
  REQUIRE(workers.size() == 1);
  CHECK(group_runs(workers[0]));
  const auto output = compilers.compile(endless_plan());
  REQUIRE_FALSE(output);
  INFO(output.error().message);
  CHECK(output.error().code == ErrorCode::kTimedOut);
  wait_until([&] { return !group_runs(workers[0]); });  // cc1plus with it.
  CHECK(contains(output.error().message, "1 s"));
  CHECK(contains(output.error().message, "host-x86-64-v3"));
  CHECK(worker_pids().empty());
  auto next = compilers.compile(tiny_plan(host()));  // A fresh worker.
  while (!next && next.error().code == ErrorCode::kTimedOut) {
    next = compilers.compile(tiny_plan(host()));
  }
  CHECK(next);
}

TEST_CASE("a worker killed in the middle of a compile is an error, and the next compile works",
          "[specializer][compile]") {
  Compilers compilers(compilers_options());
  if (const auto identity = compilers.identity(host()); !identity) {
    BROACH_SKIP(identity.error().message);
  }
  const auto workers = worker_pids();
  REQUIRE(workers.size() == 1);
  std::thread killer([&] {
    // The worker is in the middle of it once its compiler runs.
    const std::string children =
        "/proc/" + std::to_string(workers[0]) + "/task/" + std::to_string(workers[0]) + "/children";
    wait_until([&] {
      std::ifstream in(children);
      int child = 0;
      return static_cast<bool>(in >> child);
    });
    ::kill(workers[0], SIGKILL);
  });
  const auto output = compilers.compile(endless_plan());
  killer.join();
  REQUIRE_FALSE(output);
  INFO(output.error().message);
  CHECK(output.error().code == ErrorCode::kCompilerDied);
  CHECK(output.error().reason == Reason::kMachine);  // It may well have done its work.
  CHECK(contains(output.error().message, "signal 9"));
  CHECK(contains(output.error().message, "host-x86-64-v3"));
  CHECK(compilers.compile(tiny_plan(host())));
}

TEST_CASE("an idle worker that was killed is replaced without an error", "[specializer][compile]") {
  Compilers compilers(compilers_options());
  if (const auto identity = compilers.identity(host()); !identity) {
    BROACH_SKIP(identity.error().message);
  }
  for (const pid_t pid : worker_pids()) ::kill(pid, SIGKILL);
  wait_until([] { return worker_pids().empty(); });
  CHECK(compilers.compile(tiny_plan(host())));
}

TEST_CASE("a compile over the memory limit says so", "[specializer][compile]") {
  auto options = compilers_options();
  options.memory_limit_bytes = std::uint64_t{192} << 20;
  Compilers compilers(options);
  if (const auto identity = compilers.identity(host()); !identity) {
    BROACH_SKIP(identity.error().message);
  }
  Plan plan = tiny_plan(host());
  plan.options.push_back("-ftemplate-depth=100000000");
  plan.sources[0].bytes =
      "template <int N> struct Deep { static constexpr int value = Deep<N - 1>::value + 1; };\n"
      "template <> struct Deep<0> { static constexpr int value = 0; };\n"
      "template <int... I> struct Many { static constexpr int value = (Deep<I>::value + ...); };\n"
      "char big[] = {";
  for (int i = 0; i < 4'000'000; ++i) plan.sources[0].bytes += "1,";
  plan.sources[0].bytes += "};\nint deep = Many<100, 200, 300>::value;\n";
  const auto output = compilers.compile(plan);
  REQUIRE_FALSE(output);
  INFO(output.error().message << "\n" << output.error().detail.substr(0, 2000));
  CHECK(output.error().code == ErrorCode::kOutOfMemory);
  CHECK(contains(output.error().message, "192 MiB"));
  CHECK(compilers.compile(tiny_plan(host())));
}

TEST_CASE("a worker that talks garbage, hangs up or says nothing is an error",
          "[specializer][compile]") {
  TempDir dir;
  auto options = compilers_options();
  options.worker = dir.path() / "broach-rtc";
  SECTION("garbage") {
    write_program(options.worker, "#!/bin/sh\nexec 1>&0\necho this is no frame at all\nexec cat\n");
    Compilers compilers(options);
    const auto output = compilers.compile(tiny_plan(host()));
    REQUIRE_FALSE(output);
    INFO(output.error().message);
    CHECK(output.error().code == ErrorCode::kCompilerDied);
    CHECK(contains(output.error().message, "not a frame"));
  }
  SECTION("hangs up with last words") {
    write_program(options.worker, "#!/bin/sh\necho my last words >&2\nexit 7\n");
    Compilers compilers(options);
    const auto output = compilers.compile(tiny_plan(host()));
    REQUIRE_FALSE(output);
    INFO(output.error().message);
    CHECK(output.error().code == ErrorCode::kCompilerDied);
    CHECK(contains(output.error().message, "status 7"));
    CHECK(contains(output.error().detail, "my last words"));
  }
  SECTION("says nothing") {
    options.time_limit_s = 1;
    write_program(options.worker, "#!/bin/sh\nexec sleep 1000\n");
    Compilers compilers(options);
    const auto output = compilers.compile(tiny_plan(host()));
    REQUIRE_FALSE(output);
    CHECK(output.error().code == ErrorCode::kTimedOut);
  }
  SECTION("cannot be started") {
    write_program(options.worker, "#!/no/such/interpreter\n");
    Compilers compilers(options);
    const auto output = compilers.compile(tiny_plan(host()));
    REQUIRE_FALSE(output);
    INFO(output.error().message);
    CHECK(output.error().code == ErrorCode::kCompilerDied);
    CHECK(contains(output.error().message, options.worker.string()));
  }
}

TEST_CASE("a missing worker, compiler or library is named with what was tried",
          "[specializer][compile]") {
  TempDir dir;
  auto options = compilers_options();
  SECTION("worker") {
    options.worker = dir.path() / "no-worker";
    Compilers compilers(options);
    const auto output = compilers.compile(tiny_plan(host()));
    REQUIRE_FALSE(output);
    CHECK(output.error().code == ErrorCode::kCompilerMissing);
    CHECK(contains(output.error().detail, options.worker.string()));
    CHECK(contains(output.error().message, "BROACH_WORKER"));
  }
  SECTION("no compiler on the search path") {
    options.search_path = dir.path().string();
    Compilers compilers(options);
    const auto identity = compilers.identity(host());
    REQUIRE_FALSE(identity);
    CHECK(identity.error().code == ErrorCode::kCompilerMissing);
    CHECK(contains(identity.error().detail, (dir.path() / "g++").string()));
    CHECK(contains(identity.error().message, "BROACH_CXX"));
  }
  SECTION("a library that is none") {
    options.nvrtc = dir.path() / "libnvrtc.so.13";
    std::ofstream(options.nvrtc) << "not a library";
    options.hiprtc = dir.path() / "libamdhip64.so.6";
    std::ofstream(options.hiprtc) << "not a library either";
    Compilers compilers(options);
    for (const Target& target : {nvidia("sm_90a"), amd("gfx90a")}) {
      const auto identity = compilers.identity(target);
      REQUIRE_FALSE(identity);
      INFO(identity.error().message);
      CHECK(identity.error().code == ErrorCode::kCompilerMissing);
      CHECK(contains(identity.error().message + identity.error().detail, dir.path().string()));
    }
  }
  SECTION("a library of another kind") {
    options.nvrtc = "/proc/self/exe";
    Compilers compilers(options);
    const auto identity = compilers.identity(nvidia("sm_90a"));
    REQUIRE_FALSE(identity);
    CHECK(identity.error().code == ErrorCode::kCompilerMissing);
  }
  SECTION("a host compiler that is none") {
    options.host_compiler = dir.path() / "c++";
    write_program(options.host_compiler, "#!/bin/sh\nexit 1\n");
    Compilers compilers(options);
    const auto identity = compilers.identity(host());
    REQUIRE_FALSE(identity);
    INFO(identity.error().message);
    CHECK(identity.error().code == ErrorCode::kCompilerMissing);
  }
  SECTION("a prefix without anything in it") {
    options.hiprtc_prefix = dir.path();
    Compilers compilers(options);
    const auto identity = compilers.identity(amd("gfx90a"));
    REQUIRE_FALSE(identity);
    CHECK(identity.error().code == ErrorCode::kCompilerMissing);
    CHECK(contains(identity.error().message, "tools/fetch-hiprtc"));
  }
}

TEST_CASE("workers end when their parent is killed", "[specializer][compile][multiprocess]") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  TempDir scratch;
  const pid_t child = ::fork();
  if (child == 0) {
    auto options = compilers_options();
    options.scratch = {scratch.path()};
    Compilers compilers(options);
    const bool found = static_cast<bool>(compilers.identity(host()));
    pid_t worker = 0;
    if (found) worker = worker_pids().at(0);
    if (::write(ends[1], &worker, sizeof worker) != sizeof worker) ::_exit(1);
    if (found) (void)compilers.compile(endless_plan());
    ::_exit(0);
  }
  pid_t worker = 0;
  REQUIRE(::read(ends[0], &worker, sizeof worker) == sizeof worker);
  ::close(ends[0]);
  ::close(ends[1]);
  if (worker != 0) {
    std::string compiler;
    const std::string children =
        "/proc/" + std::to_string(worker) + "/task/" + std::to_string(worker) + "/children";
    wait_until([&] { return static_cast<bool>(std::ifstream(children) >> compiler); });
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    // Orphans are reaped by whoever adopts them, which may be late: a zombie counts as ended.
    const auto ended = [](const std::string& pid) {
      std::ifstream stat("/proc/" + pid + "/stat");
      std::string word;
      std::string name;
      std::string state;
      return !(stat >> word >> name >> state) || state == "Z";
    };
    wait_until([&] { return ended(std::to_string(worker)) && ended(compiler); });
    CHECK(std::filesystem::is_empty(scratch.path()));
  } else {
    ::waitpid(child, nullptr, 0);
    BROACH_SKIP("no host compiler");
  }
}

TEST_CASE("a forked child leaves its parent's workers alone",
          "[specializer][compile][multiprocess]") {
  Compilers compilers(compilers_options());
  if (const auto identity = compilers.identity(host()); !identity) {
    BROACH_SKIP(identity.error().message);
  }
  const auto before = worker_pids();
  const pid_t child = ::fork();
  if (child == 0) {
    const bool compiled = static_cast<bool>(compilers.compile(tiny_plan(host())));
    ::_exit(compiled ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
  CHECK(worker_pids() == before);
  CHECK(compilers.compile(tiny_plan(host())));
}
