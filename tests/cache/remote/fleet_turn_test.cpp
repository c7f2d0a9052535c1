#include "cache/remote/fleet_turn.hpp"

#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "tests/cache/remote/memory_remote.hpp"
#include "tests/cache/remote/remotes.hpp"
#include "tests/support/catch.hpp"

namespace broach::cache::remote {
namespace {

using std::chrono::milliseconds;

KeyRecord sample() { return KeyBuilder().field("name", "sample").finish(); }

// No renewal comes into these cases.
constexpr LeaseKeeper::Terms kTerms{milliseconds(600'000), milliseconds(2'000)};

/// One process of a fleet that shares a shelf.
struct Process {
  Reporter reporter{{}};
  Peer peer;
  LeaseKeeper keeper{peer, kTerms, reporter};
  std::atomic<int> looks{0};

  explicit Process(test::Shelf& shelf)
      : peer(std::make_unique<test::MemoryRemote>(shelf), {test::kPatient, test::kPatient, {}},
             reporter) {}

  FleetTurn take(const LeasePatience& patience = {}) {
    return take_fleet_turn(
        sample(), peer, keeper, reporter, patience,
        [this] {
          ++looks;
          return peer.get(sample()).has_value();
        },
        [](std::string_view) {});
  }
};

}  // namespace

TEST_CASE("one process has the turn, and the next is served by what it stored",
          "[cache][remote][fleet]") {
  test::Shelf shelf;
  Process maker(shelf);
  Process waiter(shelf);
  CHECK(maker.take() == FleetTurn::kMine);
  auto waiting = std::async(std::launch::async, [&] { return waiter.take(); });
  while (waiter.reporter.counters()["lease_waited"] == 0) std::this_thread::yield();
  REQUIRE(maker.peer.put(sample(), "value", {}));
  maker.keeper.release(sample().key, LeaseKeeper::Outcome::kStored);
  CHECK(waiting.get() == FleetTurn::kServed);
  CHECK(shelf.wait_until([&] { return shelf.leases.empty(); }));
}

TEST_CASE("what was stored before the turn was had is found with it", "[cache][remote][fleet]") {
  test::Shelf shelf;
  Process process(shelf);
  REQUIRE(process.peer.put(sample(), "value", {}));
  CHECK(process.take() == FleetTurn::kServed);
  CHECK(shelf.wait_until([&] { return shelf.leases.empty(); }));
}

TEST_CASE("a waiter takes over from a holder whose lease ended", "[cache][remote][fleet]") {
  test::Shelf shelf;
  shelf.leases[sample().key] = "token host 1 2 compile";
  Process waiter(shelf);
  auto waiting = std::async(std::launch::async, [&] { return waiter.take(); });
  while (waiter.reporter.counters()["lease_waited"] == 0) std::this_thread::yield();
  {
    const std::lock_guard lock(shelf.mutex);
    shelf.leases.clear();
  }
  CHECK(waiting.get() == FleetTurn::kMine);
}

TEST_CASE("nobody waits for a holder that will not store, does not move, or cannot be asked about",
          "[cache][remote][fleet]") {
  test::Shelf shelf;
  Process process(shelf);
  SECTION("it will not store") {
    shelf.leases[sample().key] = "token host 1 2 not_stored";
    CHECK(process.take() == FleetTurn::kAlone);
  }
  SECTION("it does not move") {
    shelf.leases[sample().key] = "token host 1 2 compile";
    CHECK(process.take({.stage = std::chrono::minutes(0)}) == FleetTurn::kAlone);
    CHECK(process.reporter.counters()["lease_stalled"] == 1);
  }
  SECTION("it moves for ever") {
    shelf.leases[sample().key] = "no note that this version can read";
    CHECK(process.take({.whole = std::chrono::minutes(0)}) == FleetTurn::kAlone);
    CHECK(process.reporter.counters()["lease_stalled"] == 1);
  }
  SECTION("the board fails") {
    shelf.failing = 1;
    CHECK(process.take() == FleetTurn::kAlone);
    CHECK(process.reporter.counters()["lease_unavailable"] == 1);
  }
}

TEST_CASE("a value that is there and was turned down is fetched once, not at every look",
          "[cache][remote][fleet]") {
  test::Shelf shelf;
  shelf.leases[sample().key] = "token host 1 2 compile";
  Process waiter(shelf);
  REQUIRE(waiter.peer.put(sample(), "value", {}));
  std::atomic<int> looks{0};
  std::atomic<int> stages{0};
  auto waiting = std::async(std::launch::async, [&] {
    return take_fleet_turn(
        sample(), waiter.peer, waiter.keeper, waiter.reporter, {},
        [&] {
          ++looks;
          return false;
        },
        [&](std::string_view) { ++stages; });
  });
  while (stages < 4) std::this_thread::yield();
  CHECK(looks == 1);
  {
    const std::lock_guard lock(shelf.mutex);
    shelf.leases.clear();
  }
  CHECK(waiting.get() == FleetTurn::kMine);
  CHECK(looks == 2);
}

TEST_CASE("a lease whose stage always moves is not waited for without end",
          "[cache][remote][fleet]") {
  test::Shelf shelf;
  const Key key = sample().key;
  std::atomic<bool> ended{false};
  // Whoever can write to the store can hold a lease that nobody works for.
  std::thread stranger([&] {
    for (int stage = 0; !ended; ++stage) {
      LeaseNote note = LeaseNote::own("start");
      note.stage = "stage" + std::to_string(stage);
      const std::lock_guard lock(shelf.mutex);
      shelf.leases.insert_or_assign(key, to_text(note));
    }
  });
  while (shelf.wait_until([&] { return true; }) && [&] {
    const std::lock_guard lock(shelf.mutex);
    return shelf.leases.empty();
  }()) {
  }
  Process process(shelf);
  LeasePatience patience;
  patience.whole = milliseconds(200);
  CHECK(process.take(patience) == FleetTurn::kAlone);
  CHECK(process.reporter.counters()["lease_stalled"] == 1);
  ended = true;
  stranger.join();
}

}  // namespace broach::cache::remote
