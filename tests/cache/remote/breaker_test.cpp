#include "cache/remote/breaker.hpp"

#include "tests/support/catch.hpp"

namespace broach::cache::remote {
namespace {

using std::chrono::milliseconds;

/// A breaker whose clock the test sets.
struct Clocked {
  Breaker::Clock::time_point now{};
  Breaker breaker{{3, milliseconds(100), milliseconds(350)}, [this] { return now; }};

  void fail() {
    auto attempt = breaker.begin();
    REQUIRE(attempt);
    (void)attempt->failed();
  }
};

}  // namespace

TEST_CASE("a breaker opens after faults in a row and lets one probe through",
          "[cache][remote][breaker]") {
  Clocked clocked;
  clocked.fail();
  clocked.fail();
  CHECK(clocked.breaker.begin()->succeeded() == Breaker::Change::kNone);  // The row is broken.
  clocked.fail();
  clocked.fail();
  CHECK(clocked.breaker.begin()->failed() == Breaker::Change::kOpened);
  CHECK_FALSE(clocked.breaker.begin());
  CHECK(clocked.breaker.state().mode == Breaker::Mode::kOpen);
  CHECK(clocked.breaker.state().probe_in == milliseconds(100));

  clocked.now += milliseconds(100);
  auto probe = clocked.breaker.begin();
  REQUIRE(probe);
  CHECK_FALSE(clocked.breaker.begin());
  CHECK(clocked.breaker.state().mode == Breaker::Mode::kProbing);
  CHECK(probe->succeeded() == Breaker::Change::kClosed);
  CHECK(clocked.breaker.begin());
}

TEST_CASE("a probe that fails doubles the pause, up to its longest", "[cache][remote][breaker]") {
  Clocked clocked;
  for (int i = 0; i < 3; ++i) clocked.fail();
  for (const int pause : {200, 350, 350}) {
    clocked.now += clocked.breaker.state().probe_in;
    clocked.fail();
    CHECK(clocked.breaker.state().probe_in == milliseconds(pause));
  }
  clocked.now += milliseconds(350);
  CHECK(clocked.breaker.begin()->succeeded() == Breaker::Change::kClosed);
  for (int i = 0; i < 3; ++i) clocked.fail();
  CHECK(clocked.breaker.state().probe_in == milliseconds(100));
}

TEST_CASE("an exchange left without a word counts as failed", "[cache][remote][breaker]") {
  Clocked clocked;
  for (int i = 0; i < 3; ++i) (void)clocked.breaker.begin();
  CHECK_FALSE(clocked.breaker.begin());
}

TEST_CASE("exchanges that began before the breaker opened lengthen no pause",
          "[cache][remote][breaker]") {
  Clocked clocked;
  auto early = clocked.breaker.begin();
  auto other = clocked.breaker.begin();
  for (int i = 0; i < 3; ++i) clocked.fail();
  CHECK(early->failed() == Breaker::Change::kNone);
  CHECK(clocked.breaker.state().probe_in == milliseconds(100));
  CHECK(other->succeeded() == Breaker::Change::kClosed);
}

}  // namespace broach::cache::remote
