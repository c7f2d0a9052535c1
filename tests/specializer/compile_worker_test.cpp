#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <set>

#include "specializer/compile/search.hpp"
#include "specializer/compile/unique_fd.hpp"
#include "specializer/compile/worker_process.hpp"
#include "tests/specializer/compile_support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"

namespace {

using namespace broach;
using namespace broach::specializer;
using namespace broach::test;

std::set<int> descriptors_of(const std::string& process) {
  std::set<int> open;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/" + process + "/fd")) {
    open.insert(std::stoi(entry.path().filename()));
  }
  return open;
}

}  // namespace

TEST_CASE("a worker inherits no descriptor and leaves none behind", "[specializer][compile]") {
  // Open and without close-on-exec, as a careless engine may have them.
  const rtc::UniqueFd careless(::open("/dev/null", O_RDONLY));
  const rtc::UniqueFd high(::fcntl(careless.get(), F_DUPFD, 700));
  const auto before = descriptors_of("self");
  {
    Compilers compilers(compilers_options());
    if (const auto identity = compilers.identity(host()); !identity) {
      BROACH_SKIP(identity.error().message);
    }
    REQUIRE(compilers.compile(tiny_plan(host())));
    for (const pid_t pid : worker_pids()) {
      // Its three standard streams, the socket, and its locked scratch directory.
      CHECK(descriptors_of(std::to_string(pid)).size() == 5);
    }
  }
  CHECK(descriptors_of("self") == before);
}

TEST_CASE("compiles work in a program that ignores its children's ends", "[specializer][compile]") {
  struct sigaction before {};
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  REQUIRE(::sigaction(SIGCHLD, &ignore, &before) == 0);
  {
    auto options = compilers_options();
    Compilers compilers(options);
    const auto output = compilers.compile(tiny_plan(host()));
    if (!output && output.error().code == ErrorCode::kCompilerMissing) {
      ::sigaction(SIGCHLD, &before, nullptr);
      BROACH_SKIP(output.error().message);
    }
    CHECK(output);
    for (const pid_t pid : worker_pids()) ::kill(pid, SIGKILL);
    wait_until([] { return worker_pids().empty(); });  // A signal takes its time to kill.
    const auto again = compilers.compile(tiny_plan(host()));
    INFO((again ? "compiled" : again.error().message));
    CHECK(again);
  }
  ::sigaction(SIGCHLD, &before, nullptr);
}

TEST_CASE("a program without standard streams can compile",
          "[specializer][compile][multiprocess]") {
  const pid_t child = ::fork();
  if (child == 0) {
    for (int fd = 0; fd < 3; ++fd) ::close(fd);
    Compilers compilers(compilers_options());
    const auto output = compilers.compile(tiny_plan(host()));
    const bool good = output || output.error().code == ErrorCode::kCompilerMissing;
    ::_exit(good ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
}

TEST_CASE("the worker program explains itself when run by hand", "[specializer][compile]") {
  const auto found = find_worker(compilers_options());
  REQUIRE(found.files.size() == 1);
  const std::string program = found.files.front().string();
  int status = std::system((program + " --version >/dev/null").c_str());
  CHECK(WEXITSTATUS(status) == 0);
  status = std::system((program + " </dev/null 2>/dev/null").c_str());
  CHECK(WEXITSTATUS(status) == 2);
}

TEST_CASE("a worker refuses requests out of turn and lives on", "[specializer][compile]") {
  WorkerLaunch launch;
  launch.command = {find_worker(compilers_options()).files.at(0).string()};
  launch.scratch_parents = {"/tmp"};
  auto worker = WorkerProcess::start(launch);
  REQUIRE(worker);
  const auto failed = [&](const rtc::Message& request) {
    const auto answer = (*worker)->exchange(request, {});
    REQUIRE(answer);
    return std::holds_alternative<rtc::Failed>(*answer);
  };
  CHECK(failed(rtc::CompileRequest{"sm_90a", {{"main.cu", ""}}, {}}));
  CHECK(failed(rtc::Compiled{"", "", 0}));
  CHECK(failed(rtc::OpenRequest{rtc::Engine::kNvrtc, "/no/such/library", 0, "/tmp/none"}));
  CHECK((*worker)->alive());
}

TEST_CASE("an architecture that NVRTC does not know is refused with those it knows",
          "[specializer][compile]") {
  Compilers compilers(compilers_options());
  if (const auto identity = compilers.identity(nvidia("sm_90a")); !identity) {
    BROACH_SKIP(identity.error().message);
  }
  const auto output = compilers.compile(tiny_plan(nvidia("sm_999")));
  REQUIRE_FALSE(output);
  INFO(output.error().message);
  CHECK(output.error().code == ErrorCode::kCompileFailed);
  CHECK(contains(output.error().message, "sm_999"));
  CHECK(contains(output.error().message, "compiles for"));
  CHECK(contains(output.error().message, " sm_90"));
}

TEST_CASE("NVRTC over the memory limit says so, and the next compile works",
          "[specializer][compile]") {
  auto options = compilers_options();
  options.memory_limit_bytes = std::uint64_t{256} << 20;
  Compilers compilers(options);
  if (const auto identity = compilers.identity(nvidia("sm_90a")); !identity) {
    BROACH_SKIP(identity.error().message);
  }
  Plan plan = tiny_plan(nvidia("sm_90a"), "int(big[*out])");
  std::string table = "__device__ const int big[] = {";
  for (int i = 0; i < 1'000'000; ++i) table += "1,";
  plan.sources[1].bytes += table + "};\n";
  const auto output = compilers.compile(plan);
  REQUIRE_FALSE(output);
  INFO(output.error().message << "\n" << output.error().detail.substr(0, 2000));
  CHECK(output.error().code == ErrorCode::kOutOfMemory);
  CHECK(contains(output.error().message, "256 MiB"));
  CHECK(compilers.compile(tiny_plan(nvidia("sm_90a"))));
}
