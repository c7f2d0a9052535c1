#include "cache/remote/lease_keeper.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "tests/cache/remote/memory_remote.hpp"
#include "tests/cache/remote/remotes.hpp"
#include "tests/support/as_user.hpp"
#include "tests/support/catch.hpp"

namespace broach::cache::remote {
namespace {

using std::chrono::milliseconds;

Key sample() { return KeyBuilder().field("name", "sample").finish().key; }

/// A board in memory and a keeper of leases on it.
struct Kept {
  test::Shelf shelf;
  Reporter reporter{{}};
  Peer peer{
      std::make_unique<test::MemoryRemote>(shelf), {test::kPatient, test::kPatient, {}}, reporter};
  std::unique_ptr<LeaseKeeper> keeper;

  explicit Kept(milliseconds time)
      : keeper(std::make_unique<LeaseKeeper>(peer, LeaseKeeper::Terms{time, milliseconds(2'000)},
                                             reporter)) {}

  LeaseNote take() {
    LeaseNote note = LeaseNote::own("start");
    REQUIRE(peer.take(sample(), to_text(note), milliseconds(1)).value().taken);
    keeper->hold(sample(), note);
    return note;
  }
};

}  // namespace

TEST_CASE("a lease is renewed while it is held and gone when it is released",
          "[cache][remote][lease]") {
  Kept kept(milliseconds(3));
  (void)kept.take();
  CHECK(kept.shelf.wait_until([&] { return kept.shelf.renewals >= 5; }));
  kept.keeper->stage(sample(), "publish");
  CHECK(kept.shelf.wait_until([&] { return kept.shelf.leases[sample()].ends_with(" publish"); }));
  kept.keeper->release(sample(), LeaseKeeper::Outcome::kStored);
  CHECK(kept.shelf.wait_until([&] { return !kept.shelf.leases.contains(sample()); }));
  CHECK(kept.reporter.counters()["lease_taken"] == 1);
  CHECK(kept.reporter.counters()["lease_lost"] == 0);
}

TEST_CASE("work that is not stored, or not finished at the close, leaves a note that says so",
          "[cache][remote][lease]") {
  Kept kept(milliseconds(600'000));
  const LeaseNote note = kept.take();
  if (GENERATE(false, true)) {
    kept.keeper->release(sample(), LeaseKeeper::Outcome::kNotStored);
  }
  kept.keeper.reset();
  const auto left = parse_lease_note(kept.shelf.leases[sample()]);
  REQUIRE(left);
  CHECK(left->token == note.token);
  CHECK(left->stage == kNotStoredStage);
}

TEST_CASE("a lease that another took is lost and no longer renewed", "[cache][remote][lease]") {
  Kept kept(milliseconds(3));
  (void)kept.take();
  {
    const std::lock_guard lock(kept.shelf.mutex);
    kept.shelf.leases[sample()] = "another host 1 2 compile";
  }
  while (kept.reporter.counters()["lease_lost"] == 0) std::this_thread::yield();
  kept.keeper.reset();
  CHECK(kept.shelf.leases[sample()] == "another host 1 2 compile");
}

TEST_CASE("a lease that no thread can renew ends by itself, and the next one is renewed",
          "[cache][remote][lease][multiprocess]") {
  if (geteuid() != 0) BROACH_SKIP("a user who may start no thread needs root");
  const auto threads = [](rlim_t most) {
    rlimit bounds{};
    if (getrlimit(RLIMIT_NPROC, &bounds) != 0) return false;
    bounds.rlim_cur = std::min(most, bounds.rlim_max);
    return setrlimit(RLIMIT_NPROC, &bounds) == 0;
  };
  CHECK(broach::test::as_user(23457, [&] {
    Kept kept(milliseconds(3));
    if (!threads(1)) return false;
    const LeaseNote note = kept.take();
    if (kept.shelf.renewals != 0 || !threads(RLIM_INFINITY)) return false;
    kept.keeper->hold(sample(), note);
    return kept.shelf.wait_until([&] { return kept.shelf.renewals >= 1; });
  }));
}

TEST_CASE("a board that fails for a moment loses no lease", "[cache][remote][lease]") {
  Kept kept(milliseconds(3));
  (void)kept.take();
  {
    const std::lock_guard lock(kept.shelf.mutex);
    kept.shelf.failing = 2;  // One fewer than opens the breaker.
    kept.shelf.renewals = 0;
  }
  CHECK(kept.shelf.wait_until([&] { return kept.shelf.renewals >= 3; }));
  CHECK(kept.reporter.counters()["remote_failed"] == 2);
  CHECK(kept.reporter.counters()["lease_lost"] == 0);
}

}  // namespace broach::cache::remote
