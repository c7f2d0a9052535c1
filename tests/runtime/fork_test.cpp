#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "specializer/plan.hpp"
#include "specializer/target.hpp"
#include "specializer/window_rows/shape.hpp"
#include "tests/runtime/fixture.hpp"
#include "tests/support/catch.hpp"
#include "tools/contract/window_rows/run.hpp"

namespace broach {
namespace {

bool is_mapped(const std::string& library) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(library) != std::string::npos) return true;
  }
  return false;
}

/// Runs in a forked child, where a failed check of the test framework would go unseen.
template <class Body>
int status_of_child(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    int status = 99;
    try {
      status = body();
    } catch (...) {
      status = 98;
    }
    _exit(status);
  }
  int status = -1;
  if (child < 0 || waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
}

}  // namespace

TEST_CASE("keys and look-ups open no driver, and a child forked after them launches",
          "[runtime][fork]") {
  // Other cases of this program may have opened a driver before.
  const bool cuda_before = is_mapped("libcuda.so");
  const bool hip_before = is_mapped("libamdhip64");
  const test::TempDir dir;
  auto forge = runtime::open_forge(test::options_in(dir));
  for (const char* name : {"host", "sm_90a"}) {
    const auto target = specializer::parse_target(name);
    REQUIRE(target);
    const auto plan = specializer::plan(test::small_shape(), *target);
    REQUIRE(plan);
    const auto key = forge.key(*plan);
    if (!key) continue;  // No compiler for that target on this machine.
    CHECK_FALSE(forge.cache().find(*key));
  }
  REQUIRE(forge.cache().entries());
  CHECK(is_mapped("libcuda.so") == cuda_before);
  CHECK(is_mapped("libamdhip64") == hip_before);

  const int status = status_of_child([&] {
    auto runtime = Runtime::create(test::options_in(dir));
    if (!runtime) return 2;
    const auto report = contract::window_rows::run_case(
        *runtime, *runtime->state().device, contract::window_rows::ragged_decodes().front());
    if (!report) return 3;
    return report->range.passed() ? 0 : 4;
  });
  CHECK(status == 0);
  // What the child compiled is the parent's too.
  CHECK(forge.cache().entries()->size() == 1);
}

TEST_CASE("a child forked after its parent's first use launches, builds and ends",
          "[runtime][fork]") {
#if defined(__SANITIZE_THREAD__)
  BROACH_SKIP("the thread sanitizer ends a child that begins threads after a fork");
#endif
  const test::TempDir dir;
  auto runtime = Runtime::create(test::options_in(dir));
  REQUIRE(runtime);
  REQUIRE(window_rows_decode(*runtime, test::small_shape()));
  runtime->state().background.drain();  // A lock that is held while a process forks stays held.
  const int status = status_of_child([&] {
    Runtime own = std::move(*runtime);  // Its end waits for nothing of the parent's.
    WindowRowsShape other = test::small_shape();
    other.window = 101;
    return window_rows_decode(own, other) ? 0 : 2;
  });
  CHECK(status == 0);
}

}  // namespace broach
