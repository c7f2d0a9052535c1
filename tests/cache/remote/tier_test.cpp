#include "cache/remote/tier.hpp"

#include <sys/stat.h>
#include <sys/wait.h>

#include <future>
#include <memory>
#include <thread>

#include "cache/remote/envelope.hpp"
#include "tests/cache/remote/live_server.hpp"
#include "tests/cache/remote/machine.hpp"
#include "tests/cache/remote/remotes.hpp"
#include "tests/cache/remote/scripted_server.hpp"
#include "tests/support/catch.hpp"

namespace broach::cache::remote {
namespace {

using cache::test::sample_object;
using cache::test::sample_signer;
using test::ask;
using test::LiveServer;
using test::Machine;
using test::ScriptedServer;

constexpr std::chrono::seconds kLong{60};

/// The number behind the words in the first line that has them; -1 where none has.
int first_number_after(const std::vector<std::string>& lines, const std::string& words) {
  for (const std::string& line : lines) {
    const std::size_t at = line.find(words);
    if (at != std::string::npos) return std::stoi(line.substr(at + words.size()));
  }
  return -1;
}

/// A real server of either kind.
std::optional<LiveServer> some_server(const std::string& scheme) {
  return scheme == "http" ? LiveServer::nginx() : LiveServer::redis();
}

}  // namespace

TEST_CASE("what one machine made serves another, which keeps it", "[cache][remote][tier]") {
  const std::string scheme = GENERATE("http", "redis");
  const auto server = some_server(scheme);
  if (!server) BROACH_SKIP("no nginx, or no redis-server, on this machine");
  const Object object = sample_object("shared", 300'000);
  {
    const auto cache = Machine().with_remote(server->url(scheme)).open();
    const auto made = ask(*cache, object);
    REQUIRE(made);
    CHECK(made->layer.kind == LayerKind::kMemory);
    CHECK(cache->drain_uploads(kLong));
    CHECK(cache->counters()["remote_uploaded"] == 1);
  }
  Machine second(0);
  second.with_remote(server->url(scheme));
  {
    const auto cache = second.open();
    const auto hit = ask(*cache, object);
    REQUIRE(hit);
    CHECK(*hit->object == object);
    CHECK(hit->layer.kind == LayerKind::kRemote);
    CHECK(hit->layer.name == server->url(scheme, scheme == "http" ? "/" : "/0"));
    CHECK(cache->counters()["made"] == 0);
    CHECK(cache->counters()["hit_remote"] == 1);
    CHECK(cache->counters()["backfilled"] == 1);
  }
  const auto later = second.open()->find(object.key);
  REQUIRE(later);
  CHECK(later->layer.kind == LayerKind::kUser);
}

TEST_CASE("what is shared goes to the remotes that have none", "[cache][remote][tier]") {
  const auto server = LiveServer::nginx();
  if (!server) BROACH_SKIP("no nginx on this machine");
  const Object object = sample_object("here before");
  const auto cache = Machine().with_remote(server->url("http")).open();
  cache->share(object);
  cache->share(object);
  REQUIRE(cache->drain_uploads(kLong));
  CHECK(cache->counters()["remote_uploaded"] == 1);
  CHECK(cache->counters()["remote_had"] == 1);
  CHECK(Machine(0).with_remote(server->url("http")).open()->find(object.key));
}

TEST_CASE("a secret comes from a file, and one that cannot be used is told",
          "[cache][remote][tier]") {
  const auto server = LiveServer::redis({"--requirepass", "right"});
  if (!server) BROACH_SKIP("no redis-server on this machine");
  Machine machine;
  machine.with_remote(server->url("redis"));
  RemoteOptions& remote = machine.options.remotes[0];
  remote.secret_file = machine.dir.path() / "token";
  CHECK_FALSE(machine.open()->layers().back().usable);
  CHECK(machine.told("cannot be opened (ENOENT)"));
  cache::test::write_text(remote.secret_file, "right\n");
  CHECK(machine.open()->probe_remotes()[0].latency);
  remote.secret_file.clear();
  remote.secret = "right\r\nX-Evil: 1";
  CHECK_FALSE(machine.open()->layers().back().usable);
}

TEST_CASE("closing a cache waits for its uploads", "[cache][remote][tier]") {
  const auto server = LiveServer::redis();
  if (!server) BROACH_SKIP("no redis-server on this machine");
  const Object object = sample_object("at the close", 2'000'000);
  REQUIRE(ask(*Machine().with_remote(server->url("redis")).open(), object));
  CHECK(test::has(*test::remote_at(server->url("redis")), object.key).value());
}

TEST_CASE("a value that nobody trusted signed, or that changed, is made here instead",
          "[cache][remote][tier]") {
  const std::string scheme = GENERATE("http", "redis");
  const auto server = some_server(scheme);
  if (!server) BROACH_SKIP("no nginx, or no redis-server, on this machine");
  const Object object = sample_object("wanted");
  std::string value = seal(object, sample_signer(1));
  std::string counter = "remote_refused_untrusted";
  const auto plant = GENERATE(0, 1, 2, 3);
  if (plant == 0) value = seal(object, sample_signer(2));
  if (plant == 1) {
    value[value.size() - 7] = static_cast<char>(value[value.size() - 7] ^ 1);
    counter = "remote_refused_forged";
  }
  if (plant == 2) {
    value = seal(sample_object("another"), sample_signer(1));
    counter = "remote_refused_damaged";
  }
  if (plant == 3) {
    value = "no value at all";
    counter = "remote_refused_damaged";
  }
  REQUIRE(test::put(*test::remote_at(server->url(scheme)), object.key, value));

  Machine machine;
  const auto cache = machine.with_remote(server->url(scheme)).open();
  const auto made = ask(*cache, object);
  REQUIRE(made);
  CHECK(*made->object == object);
  CHECK(cache->counters()["made"] == 1);
  CHECK(cache->counters()["hit_remote"] == 0);
  CHECK(cache->counters()[counter] > 0);
  CHECK(machine.told(object.key.key.hex()));
  // Its own, signed, has replaced it.
  REQUIRE(cache->drain_uploads(kLong));
  CHECK(Machine().with_remote(server->url(scheme)).open()->find(object.key));
}

TEST_CASE("without a signing key, or read-only by choice, nothing is uploaded",
          "[cache][remote][tier]") {
  const auto server = LiveServer::redis();
  if (!server) BROACH_SKIP("no redis-server on this machine");
  const bool has_key = GENERATE(false, true);
  Machine machine(has_key ? 1 : 0);
  machine.with_remote(server->url("redis"), has_key ? RemoteUse::kReadOnly : RemoteUse::kReadWrite);
  const Object object = sample_object("kept here");
  {
    const auto cache = machine.open();
    REQUIRE(ask(*cache, object));
    REQUIRE(cache->drain_uploads(kLong));
    CHECK(cache->counters()["remote_uploaded"] == 0);
    CHECK(cache->counters()["lease_taken"] == 0);
    const auto status = cache->probe_remotes();
    REQUIRE(status.size() == 1);
    CHECK_FALSE(status[0].writable);
    CHECK(status[0].latency);
  }
  CHECK(machine.told("BROACH_SIGNING_KEY") == !has_key);
  CHECK_FALSE(test::has(*test::remote_at(server->url("redis")), object.key).value());
}

TEST_CASE("a remote is not asked where no key is trusted", "[cache][remote][tier]") {
  // Nothing listens there: a question would be counted as a fault.
  Machine machine(0, {});
  const auto cache =
      machine.with_remote("redis://127.0.0.1:" + std::to_string(test::free_port())).open();
  REQUIRE(ask(*cache, sample_object("made")));
  CHECK(cache->counters()["remote_failed"] == 0);
  CHECK(machine.told("BROACH_TRUSTED_KEYS"));
  CHECK_FALSE(cache->layers().back().usable);
  CHECK_FALSE(cache->layers().back().why.empty());
}

TEST_CASE("a remote that is down costs no binary, and is soon left alone",
          "[cache][remote][tier]") {
  Machine machine;
  const std::string scheme = GENERATE("http", "redis");
  const auto cache =
      machine.with_remote(scheme + "://user:s3cret@127.0.0.1:" + std::to_string(test::free_port()))
          .open();
  for (int i = 0; i < 4; ++i) REQUIRE(ask(*cache, sample_object(std::to_string(i))));
  REQUIRE(cache->drain_uploads(kLong));
  CHECK(cache->counters()["made"] == 4);
  CHECK(cache->counters()["remote_failed_refused"] >= 3);
  CHECK(cache->counters()["remote_breaker_opened"] == 1);
  CHECK(cache->counters()["remote_skipped"] > 0);
  const auto status = cache->probe_remotes();
  CHECK(status[0].breaker == "open");
  CHECK_FALSE(status[0].latency);
  CHECK_FALSE(status[0].fault.empty());
  CHECK_FALSE(machine.told("s3cret"));
  CHECK(status[0].layer.name.find("s3cret") == std::string::npos);
  CHECK(status[0].fault.find("s3cret") == std::string::npos);
}

TEST_CASE(
    "a real server that stops answering costs the wait for a first byte, and only three times",
    "[cache][remote][tier]") {
  const std::string scheme = GENERATE("http", "redis");
  const auto server = some_server(scheme);
  if (!server) BROACH_SKIP("no nginx, or no redis-server, on this machine");
  Machine machine(0);  // Reads only: what is asked is asked by look-ups.
  machine.with_remote(server->url(scheme));
  machine.options.remotes[0].first_byte = std::chrono::milliseconds(0);  // The default.
  const auto cache = machine.open();
  server->stop();
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < 20; ++i) REQUIRE(ask(*cache, sample_object(std::to_string(i))));
  const auto took = std::chrono::steady_clock::now() - began;
  server->go_on();
  CHECK(cache->counters()["made"] == 20);
  CHECK(cache->counters()["remote_failed_timed_out"] >= 3);
  CHECK(cache->counters()["remote_breaker_opened"] >= 1);
  CHECK(cache->counters()["remote_skipped"] > 0);
  CHECK(took >= std::chrono::milliseconds(3 * 200));
  // Each fault is a wait of 200 ms; what was asked besides was not waited for.
  CHECK(cache->counters()["remote_failed"] + cache->counters()["remote_skipped"] >= 20);
  // The whole may take ten times as long: less says that it was the first byte that was missed.
  const auto waited_ms = first_number_after(*machine.notices, "given up after ");
  CHECK(waited_ms >= 200);
  CHECK(waited_ms < 2'000);
}

TEST_CASE("a remote that stalls is given up, and a close does not wait for it",
          "[cache][remote][tier]") {
  const std::string scheme = GENERATE("http", "redis");
  const ScriptedServer server("", ScriptedServer::Then::kStall);
  Machine machine;
  machine.with_remote(server.url(scheme));
  machine.options.remotes[0].first_byte = std::chrono::milliseconds(20);
  machine.options.upload_drain = std::chrono::milliseconds(1);
  auto cache = machine.open();
  REQUIRE(ask(*cache, sample_object("made")));
  CHECK(cache->counters()["remote_failed_timed_out"] >= 1);
  CHECK(cache->counters()["made"] == 1);
  cache.reset();
  // The upload was under way, or had not begun.
  CHECK((machine.told("left as the cache closed") || machine.told("had not reached")));
}

TEST_CASE("an object that the queue of uploads cannot take is dropped, said once, and serves",
          "[cache][remote][tier][slow]") {
  const auto server = LiveServer::redis();
  if (!server) BROACH_SKIP("no redis-server on this machine");
  Machine machine;
  const auto cache = machine.with_remote(server->url("redis")).open();
  Object object = sample_object("large");
  object.payload.resize(std::size_t{65} << 20);
  REQUIRE(ask(*cache, object));
  CHECK(cache->counters()["remote_upload_dropped"] == 1);
  CHECK(machine.told("queue of uploads is full"));
  CHECK(cache->counters()["made"] == 1);
  // Whoever waits in the fleet is told that nothing will come.
  const auto other = test::remote_at(server->url("redis"));
  for (std::string held_by; !held_by.ends_with("not_stored");) {
    Deadline deadline(test::kPatient);
    const auto answer =
        other->leases()->take(object.key.key, "token", std::chrono::seconds(60), deadline);
    REQUIRE(answer);
    // The note stands for two seconds: on a machine that is busy it can be gone already.
    if (answer->taken) break;
    held_by = answer->held_by;
  }
}

TEST_CASE("each key is made once in a fleet", "[cache][remote][tier][fleet]") {
  const auto server = LiveServer::redis();
  if (!server) BROACH_SKIP("no redis-server on this machine");
  std::vector<std::unique_ptr<Machine>> machines;
  std::vector<std::unique_ptr<Cache>> caches;
  for (int i = 0; i < 6; ++i) {
    machines.push_back(std::make_unique<Machine>());
    caches.push_back(machines.back()->with_remote(server->url("redis")).open());
  }
  for (int key = 0; key < 5; ++key) {
    const Object object = sample_object("key " + std::to_string(key));
    std::vector<std::future<bool>> asked;
    for (const auto& cache : caches) {
      asked.push_back(std::async(std::launch::async, [&cache, &object] {
        const auto hit = ask(*cache, object);
        return hit && *hit->object == object;
      }));
    }
    for (auto& right : asked) CHECK(right.get());
  }
  std::uint64_t made = 0;
  std::uint64_t served = 0;
  for (const auto& cache : caches) {
    made += cache->counters()["made"];
    served += cache->counters()["hit_remote"];
  }
  CHECK(made == 5);
  CHECK(served == 25);
}

TEST_CASE("a compile that fails in a fleet fails for each asker, and none waits for another",
          "[cache][remote][tier][fleet]") {
  const auto server = LiveServer::redis();
  if (!server) BROACH_SKIP("no redis-server on this machine");
  Machine machine;
  Machine other;
  const auto fails = [](Cache& cache) {
    return cache.find_or_make(cache::test::sample_key("bad"), [](const Stage&) -> Result<Object> {
      return Error{ErrorCode::kCompileFailed, "does not compile", "the log"};
    });
  };
  const auto first = machine.with_remote(server->url("redis")).open();
  const auto second = other.with_remote(server->url("redis")).open();
  CHECK(fails(*first).error().code == ErrorCode::kCompileFailed);
  CHECK(fails(*second).error().code == ErrorCode::kCompileFailed);
  CHECK(second->counters()["made"] == 1);
}

TEST_CASE("a lease whose holder is gone ends, and the next asker makes the key",
          "[cache][remote][tier][fleet]") {
  const auto server = LiveServer::redis();
  if (!server) BROACH_SKIP("no redis-server on this machine");
  const Object object = sample_object("orphan");
  const auto remote = test::remote_at(server->url("redis"));
  Deadline deadline(test::kPatient);
  REQUIRE(
      remote->leases()
          ->take(object.key.key, "token host 1 2 compile", std::chrono::milliseconds(300), deadline)
          .value()
          .taken);
  const auto cache = Machine().with_remote(server->url("redis")).open();
  REQUIRE(ask(*cache, object));
  CHECK(cache->counters()["made"] == 1);
  CHECK(cache->counters()["lease_waited"] == 1);
  CHECK(cache->counters()["lease_taken"] == 1);
}

TEST_CASE("a machine that is killed while it makes a key holds nobody up for longer than its lease",
          "[cache][remote][tier][fleet][multiprocess][slow]") {
  const auto server = LiveServer::redis();
  if (!server) BROACH_SKIP("no redis-server on this machine");
  Machine dead;
  Machine machine;
  const Object object = sample_object("half made");
  broach::test::ChildProcess holder(
      BROACH_CACHE_WORKER, {"fleet-hold", (dead.dir.path() / "cache").string(), "half made",
                            server->url("redis"), dead.options.signing_key.string()});
  REQUIRE(holder.read_line() == "ready");
  holder.signal(SIGKILL);
  CHECK(holder.wait() == -SIGKILL);
  const auto cache = machine.with_remote(server->url("redis")).open();
  REQUIRE(ask(*cache, object));
  CHECK(cache->counters()["lease_waited"] == 1);
  CHECK(cache->counters()["lease_taken"] == 1);
  CHECK(cache->counters()["made"] == 1);
}

TEST_CASE("a child of a fork has no remotes, and its parent keeps its own",
          "[cache][remote][tier][fork]") {
  const auto server = LiveServer::redis();
  if (!server) BROACH_SKIP("no redis-server on this machine");
  const Object object = sample_object("parent");
  auto cache = Machine().with_remote(server->url("redis")).open();
  REQUIRE(ask(*cache, object));
  REQUIRE(cache->drain_uploads(kLong));
  const pid_t child = fork();
  if (child == 0) {
    const Object own = sample_object("child");
    const bool made = ask(*cache, own) && cache->counters()["made"] == 2;
    cache.reset();  // Waits for no thread of the parent's.
    _exit(made ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(test::has(*test::remote_at(server->url("redis")), object.key).value());
  CHECK_FALSE(
      test::has(*test::remote_at(server->url("redis")), sample_object("child").key).value());
  REQUIRE(ask(*cache, sample_object("later")));
  CHECK(cache->drain_uploads(kLong));
  CHECK(cache->counters()["remote_uploaded"] == 2);
}

TEST_CASE("a secret's file is regular, nobody else's, and its name is never shown",
          "[cache][remote][tier][trust]") {
  Machine machine(0);
  machine.with_remote("redis://127.0.0.1:" + std::to_string(test::free_port()));
  RemoteOptions& remote = machine.options.remotes.front();
  const auto place = machine.dir.path() / "a-token-in-the-wrong-place";
  remote.secret_file = place;
  const auto why = [&] {
    const auto rows = machine.open()->layers();
    return rows.back().why;
  };
  SECTION("missing") { CHECK(why().find("cannot be opened (ENOENT)") != std::string::npos); }
  SECTION("the secret itself") {
    remote.secret_file = "a-token-in-the-wrong-place";
    CHECK(why().find("cannot be opened") != std::string::npos);
  }
  SECTION("a pipe, which is not waited for") {
    REQUIRE(mkfifo(place.c_str(), 0600) == 0);
    CHECK(why().find("not a regular file") != std::string::npos);
  }
  SECTION("a directory") {
    std::filesystem::create_directory(place);
    CHECK(why().find("not a regular file") != std::string::npos);
  }
  SECTION("empty") {
    cache::test::write_text(place, "\n");
    CHECK(why().find("is empty") != std::string::npos);
  }
  SECTION("one that others can write") {
    cache::test::write_text(place, "secret\n");
    std::filesystem::permissions(place, std::filesystem::perms(0622));
    CHECK(why().find("could be changed by others") != std::string::npos);
  }
  SECTION("one that is right") {
    cache::test::write_text(place, "secret\n");
    CHECK(why().find("secret") == std::string::npos);
  }
  SECTION("a pipe in the place of authorities") {
    remote.secret_file.clear();
    remote.certificates = place;
    REQUIRE(mkfifo(place.c_str(), 0600) == 0);
    CHECK(why().find("file of authorities") != std::string::npos);
    return;  // That name is no secret.
  }
  CHECK_FALSE(machine.told("a-token-in-the-wrong-place"));
  CHECK(why().find("a-token-in-the-wrong-place") == std::string::npos);
}

}  // namespace broach::cache::remote
