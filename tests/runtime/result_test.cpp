#include "broach/result.hpp"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <string>

#include "tests/support/catch.hpp"

namespace broach {
namespace {

struct Ending {
  int signal = 0;  ///< What ended the child; 0 where it came to its end.
  std::string stderr_text;
};

/// Runs a step in a forked child, which leaves by _exit when the step returns.
template <class Step>
Ending end_of(Step step) {
  std::array<int, 2> ends{};
  REQUIRE(pipe(ends.data()) == 0);
  const pid_t pid = fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    signal(SIGABRT, SIG_DFL);  // Not the test framework's handler.
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    dup2(ends[1], STDERR_FILENO);
    step();
    _exit(0);
  }
  close(ends[1]);
  Ending ending;
  for (char c = 0; read(ends[0], &c, 1) == 1;) ending.stderr_text.push_back(c);
  close(ends[0]);
  int status = 0;
  waitpid(pid, &status, 0);
  if (WIFSIGNALED(status)) ending.signal = WTERMSIG(status);
  return ending;
}

// Not inlined: GCC 12 takes the error that a value's Result has no room for as uninitialised.
[[gnu::noinline]] Result<std::unique_ptr<int>> three() { return std::make_unique<int>(3); }

Result<int> missing() { return Error{ErrorCode::kNotFound, "no such kernel", ""}; }

}  // namespace

TEST_CASE("the value of an error aborts with the error that is there", "[runtime][result]") {
  const auto by_value = end_of([] { (void)missing().value(); });
  const auto by_star = end_of([] {
    const auto result = missing();
    (void)*result;
  });
  const auto by_arrow = end_of([] {
    const Result<std::string> result = Error{ErrorCode::kNotFound, "no such kernel", ""};
    (void)result->size();
  });
  for (const Ending& ending : {by_value, by_star, by_arrow}) {
    CHECK(ending.signal == SIGABRT);
    CHECK(ending.stderr_text ==
          "broach: a Result's value was used, and it holds an error: not_found: no such kernel\n");
  }
}

TEST_CASE("the error of a value aborts with a message", "[runtime][result]") {
  const auto of_value = end_of([] { (void)Result<int>(7).error(); });
  CHECK(of_value.signal == SIGABRT);
  CHECK(of_value.stderr_text == "broach: a Result's error was used, and it holds a value\n");
  const auto of_success = end_of([] { (void)Result<void>().error(); });
  CHECK(of_success.signal == SIGABRT);
  CHECK(of_success.stderr_text == "broach: a Result's error was used, and it holds success\n");
}

TEST_CASE("a Result that is used as it is ends nothing", "[runtime][result]") {
  const auto ending = end_of([] {
    const Result<int> seven(7);
    if (*seven != 7 || missing().error().code != ErrorCode::kNotFound) _exit(1);
    if (Result<void>().ok() != true) _exit(2);
  });
  CHECK(ending.signal == 0);
  CHECK(ending.stderr_text.empty());
}

TEST_CASE("a Result carries what can only be moved, and an error's reason", "[runtime][result]") {
  Result<std::unique_ptr<int>> made = three();
  CHECK(**made == 3);
  CHECK(*std::move(made).value() == 3);
  const Result<void> refused = Error{ErrorCode::kDenied, "no", "", Reason::kForged};
  CHECK(refused.error().reason == Reason::kForged);
  CHECK(name_of(refused.error().reason) == "forged");
  CHECK(missing().error().reason == Reason::kNone);
  CHECK(name_of(Reason::kNone).empty());
}

}  // namespace broach
