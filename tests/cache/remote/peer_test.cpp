#include "cache/remote/peer.hpp"

#include <memory>

#include "tests/cache/remote/live_server.hpp"
#include "tests/cache/remote/memory_remote.hpp"
#include "tests/cache/remote/remotes.hpp"
#include "tests/support/catch.hpp"

namespace broach::cache::remote {
namespace {

using std::chrono::milliseconds;

KeyRecord sample() { return KeyBuilder().field("name", "sample").finish(); }

Peer::Terms terms(milliseconds pause) {
  return {test::kPatient, test::kPatient, {3, pause, milliseconds(60'000)}};
}

}  // namespace

TEST_CASE("a peer's faults are counted by cause and look like misses", "[cache][remote][peer]") {
  test::Shelf shelf;
  std::vector<std::string> told;
  Reporter reporter([&](std::string_view line) { told.emplace_back(line); });
  Peer peer(std::make_unique<test::MemoryRemote>(shelf), terms(milliseconds(60'000)), reporter);
  CHECK(peer.put(sample(), "value", {}));
  CHECK(peer.get(sample()) == "value");
  CHECK_FALSE(peer.get(KeyBuilder().field("name", "other").finish()));
  CHECK(reporter.counters()["remote_miss"] == 1);

  shelf.failing = 100;
  CHECK_FALSE(peer.get(sample()));
  CHECK_FALSE(peer.has(sample()));
  CHECK_FALSE(peer.put(sample(), "value", {}));
  CHECK(reporter.counters()["remote_failed"] == 3);
  CHECK(reporter.counters()["remote_failed_planted"] == 3);
  CHECK(reporter.counters()["remote_breaker_opened"] == 1);
  CHECK(peer.last_fault() == "memory: planted");
  // One line for the cause, one for the breaker.
  CHECK(told.size() == 2);

  CHECK_FALSE(peer.get(sample()));
  CHECK_FALSE(peer.take(sample().key, "token", milliseconds(1000)));
  CHECK(reporter.counters()["remote_skipped"] == 2);
  CHECK(reporter.counters()["remote_failed"] == 3);
  CHECK(shelf.failing == 97);  // Nobody asked it.
}

TEST_CASE("a remote that comes back closes its breaker", "[cache][remote][peer]") {
  auto server = test::LiveServer::nginx();
  if (!server) BROACH_SKIP("no nginx on this machine");
  Reporter reporter({});
  Peer peer(test::remote_at(server->url("http")), terms(milliseconds(1)), reporter);
  REQUIRE(peer.put(sample(), "value", {}));
  server->kill();
  while (reporter.counters()["remote_breaker_opened"] == 0) CHECK_FALSE(peer.get(sample()));
  CHECK(peer.breaker().mode != Breaker::Mode::kClosed);
  CHECK_FALSE(peer.probe());
  server->start();
  // Each refused probe doubles the pause; the first that is answered ends it.
  std::optional<std::string> found;
  for (int i = 0; !found && i < 30'000; ++i) {
    found = peer.get(sample());
    if (!found) std::this_thread::sleep_for(peer.breaker().probe_in);
  }
  CHECK(found == "value");
  CHECK(reporter.counters()["remote_breaker_closed"] == 1);
  CHECK(peer.breaker().mode == Breaker::Mode::kClosed);
  CHECK(peer.probe());
}

}  // namespace broach::cache::remote
