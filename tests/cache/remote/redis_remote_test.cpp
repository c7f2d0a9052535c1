#include "cache/remote/redis_remote.hpp"

#include <future>
#include <iterator>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/cache/remote/live_server.hpp"
#include "tests/cache/remote/remotes.hpp"
#include "tests/cache/remote/scripted_server.hpp"
#include "tests/support/catch.hpp"

namespace broach::cache::remote {
namespace {

using std::chrono::milliseconds;
using test::LiveServer;
using test::ScriptedServer;

KeyRecord sample() { return KeyBuilder().field("name", "sample").finish(); }

LeaseBoard::Answer take(Remote& remote, const std::string& text, milliseconds time) {
  Deadline deadline(test::kPatient);
  return remote.leases()->take(sample().key, text, time, deadline).value();
}

bool renew(Remote& remote, const std::string& token, const std::string& text, milliseconds time) {
  Deadline deadline(test::kPatient);
  return remote.leases()->renew(sample().key, token, text, time, deadline).value();
}

bool release(Remote& remote, const std::string& token) {
  Deadline deadline(test::kPatient);
  return remote.leases()->release(sample().key, token, deadline).value();
}

constexpr milliseconds kLong{600'000};

std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

}  // namespace

TEST_CASE("Redis keeps values, in the database that the URL names", "[cache][remote][redis]") {
  const auto server = LiveServer::redis();
  if (!server) BROACH_SKIP("no redis-server on this machine");
  test::check_keeps_values(*test::remote_at(server->url("redis")));
  test::check_keeps_values(*test::remote_at(server->url("redis", "/5")));
}

TEST_CASE("Redis behind TLS keeps values for those who know its authority",
          "[cache][remote][redis]") {
  const broach::test::TempDir dir;
  const auto certificate = test::make_certificate(dir.path());
  if (!certificate) BROACH_SKIP("no openssl program to make a certificate");
  const auto server = LiveServer::redis_with_tls(*certificate);
  if (!server) BROACH_SKIP("no redis-server on this machine");
  test::check_keeps_values(
      *test::remote_at(server->url("rediss"), "", certificate->certificate.string()));

  const auto stranger = test::remote_at(server->url("rediss"));
  const auto refused = test::get(*stranger, sample());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().detail == "tls");
}

TEST_CASE("a password opens Redis, and a wrong one is told apart from a miss",
          "[cache][remote][redis]") {
  const auto server = LiveServer::redis({"--requirepass", "right"});
  if (!server) BROACH_SKIP("no redis-server on this machine");
  test::check_keeps_values(*test::remote_at(server->url("redis"), "right"));
  const std::string at = "127.0.0.1:" + std::to_string(server->port());
  test::check_keeps_values(*test::remote_at("redis://default:right@" + at + "/1"));
  for (const char* secret : {"", "wrong"}) {
    const auto remote = test::remote_at(server->url("redis"), secret);
    const auto found = test::get(*remote, sample());
    REQUIRE_FALSE(found);
    CHECK(found.error().code == ErrorCode::kDenied);
    CHECK(found.error().detail == "denied");
  }
}

TEST_CASE("a user of Redis's own, behind TLS, needs no more rights than the page names",
          "[cache][remote][redis]") {
  const broach::test::TempDir dir;
  const auto certificate = test::make_certificate(dir.path());
  if (!certificate) BROACH_SKIP("no openssl program to make a certificate");
  // docs/remote.md has these words.
  const auto server = LiveServer::redis_with_tls(
      *certificate, words("--user default off "
                          "--user broach on >a-long-password ~broach:1:* "
                          "+get +set +exists +eval +del "
                          "--user reader on >another ~broach:1:* +get +exists"));
  if (!server) BROACH_SKIP("no redis-server on this machine");
  const auto as = [&](const std::string& user, const std::string& secret) {
    return test::remote_at("rediss://" + user + "@127.0.0.1:" + std::to_string(server->port()),
                           secret, certificate->certificate.string());
  };
  const auto remote = as("broach", "a-long-password");
  test::check_keeps_values(*remote);
  CHECK(take(*remote, "token1 compile", kLong).taken);
  CHECK(renew(*remote, "token1", "token1 publish", kLong));
  CHECK(release(*remote, "token1"));

  const auto reader = as("reader", "another");
  CHECK_FALSE(test::get(*reader, sample()).value().has_value());
  CHECK(test::put(*reader, sample(), "value").error().detail == "denied");
  CHECK(test::get(*as("broach", "wrong"), sample()).error().detail == "denied");
  CHECK(test::get(*as("nobody", "a-long-password"), sample()).error().detail == "denied");
}

TEST_CASE("a real Redis that is killed half-way through a value is an error",
          "[cache][remote][redis]") {
  auto server = LiveServer::redis();
  if (!server) BROACH_SKIP("no redis-server on this machine");
  const auto remote = test::remote_at(server->url("redis"));
  const std::string value(60 << 20, 'v');
  REQUIRE(test::put(*remote, sample(), value));
  // Stopped as soon as it has begun to send; asked again where it was done before that was seen.
  for (bool half_way = false; !half_way;) {
    const std::uint64_t before = server->written_bytes();
    auto waiting = std::async(std::launch::async, [&] { return test::get(*remote, sample()); });
    test::wait_until_written(*server, before + 1024, waiting);
    server->stop();
    half_way = server->written_bytes() < before + value.size() / 2;
    if (half_way) {
      server->kill();
    } else {
      server->go_on();
    }
    const auto found = waiting.get();
    REQUIRE(found.ok() != half_way);
    if (half_way) CHECK(found.error().detail == "closed");
  }
}

TEST_CASE("a Redis that is down, stalls or is killed half-way is an error with its cause",
          "[cache][remote][redis]") {
  SECTION("down") {
    const auto remote = test::remote_at("redis://127.0.0.1:" + std::to_string(test::free_port()));
    CHECK(test::get(*remote, sample()).error().detail == "refused");
  }
  SECTION("stopped") {
    auto server = LiveServer::redis();
    if (!server) BROACH_SKIP("no redis-server on this machine");
    const auto remote = test::remote_at(server->url("redis"));
    REQUIRE(test::put(*remote, sample(), "value"));
    server->stop();
    const auto found = test::get(*remote, sample(), test::kImpatient);
    REQUIRE_FALSE(found);
    CHECK(found.error().code == ErrorCode::kTimedOut);
    server->go_on();
    // The late answer belongs to nobody: a new connection asks again.
    CHECK(test::get(*remote, sample()).value() == "value");
  }
  SECTION("killed while a look-up waits") {
    auto server = LiveServer::redis();
    if (!server) BROACH_SKIP("no redis-server on this machine");
    const auto remote = test::remote_at(server->url("redis"));
    REQUIRE(test::put(*remote, sample(), "value"));
    server->stop();
    auto waiting = std::async(std::launch::async, [&] { return test::get(*remote, sample()); });
    server->kill();
    const auto found = waiting.get();
    REQUIRE_FALSE(found);
    // Closed under the question, or gone before it was asked again.
    CHECK((found.error().detail == "closed" || found.error().detail == "refused"));
  }
  SECTION("killed half-way through a value") {
    const ScriptedServer server("$1000\r\nabc", ScriptedServer::Then::kClose);
    const auto remote = test::remote_at(server.url("redis"));
    CHECK(test::get(*remote, sample()).error().detail == "closed");
  }
  SECTION("stalled half-way through a value") {
    const ScriptedServer server("$1000\r\nabc", ScriptedServer::Then::kStall);
    const auto remote = test::remote_at(server.url("redis"));
    CHECK(test::get(*remote, sample(), test::kImpatient).error().detail == "timed_out");
  }
}

TEST_CASE("a connection that Redis closed while it waited is opened again",
          "[cache][remote][redis]") {
  auto server = LiveServer::redis();
  if (!server) BROACH_SKIP("no redis-server on this machine");
  const auto remote = test::remote_at(server->url("redis"));
  REQUIRE(test::put(*remote, sample(), "value"));
  server->kill();
  server->start();
  const auto found = test::get(*remote, sample());
  REQUIRE(found);
  CHECK_FALSE(found->has_value());
}

TEST_CASE("bytes that are not Redis's are an error, never a value", "[cache][remote][redis]") {
  const auto cause = [](const std::string& answer) {
    const ScriptedServer server(answer, ScriptedServer::Then::kStall);
    const auto found = test::get(*test::remote_at(server.url("redis")), sample());
    return found ? std::string("none") : found.error().detail;
  };
  CHECK(cause("HTTP/1.1 400 Bad Request\r\n\r\n") == "protocol");
  CHECK(cause("$-5\r\n") == "protocol");
  CHECK(cause("*1000000000\r\n") == "protocol");
  CHECK(cause("$5\r\nvalue\r\n$5\r\nother\r\n") == "protocol");
  CHECK(cause("-LOADING Redis is loading the dataset in memory\r\n") == "server_error");
  CHECK(cause(":1\r\n") == "server_error");

  // What a peer says is shown to people, and moves no cursor of theirs.
  const ScriptedServer server("-ERR \x1b[2Jgone\r\n", ScriptedServer::Then::kStall);
  const auto found = test::get(*test::remote_at(server.url("redis")), sample());
  CHECK(found.error().message.find("ERR ?[2Jgone") != std::string::npos);
}

TEST_CASE("a lease is one process's until it ends", "[cache][remote][redis][lease]") {
  const auto server = LiveServer::redis();
  if (!server) BROACH_SKIP("no redis-server on this machine");
  const auto one = test::remote_at(server->url("redis"));
  const auto two = test::remote_at(server->url("redis"));

  CHECK(take(*one, "token1 compile", kLong).taken);
  const auto held = take(*two, "token2 compile", kLong);
  CHECK_FALSE(held.taken);
  CHECK(held.held_by == "token1 compile");
  CHECK_FALSE(release(*two, "token2"));
  CHECK_FALSE(renew(*two, "token2", "token2 x", kLong));
  CHECK(renew(*one, "token1", "token1 publish", kLong));
  CHECK(take(*two, "token2 compile", kLong).held_by == "token1 publish");
  CHECK(release(*one, "token1"));
  CHECK(take(*two, "token2 compile", kLong).taken);
  CHECK_FALSE(release(*one, "token1"));
}

TEST_CASE("the lease of a holder that is gone ends by itself", "[cache][remote][redis][lease]") {
  const auto server = LiveServer::redis();
  if (!server) BROACH_SKIP("no redis-server on this machine");
  const auto remote = test::remote_at(server->url("redis"));
  REQUIRE(take(*remote, "token1 compile", milliseconds(20)).taken);
  // Taken as soon as it has ended, and not before anybody gave it up.
  while (!take(*remote, "token2 compile", kLong).taken) std::this_thread::yield();
  CHECK_FALSE(renew(*remote, "token1", "token1 late", kLong));
}

TEST_CASE("of many that ask for one lease, one has it", "[cache][remote][redis][lease]") {
  const auto server = LiveServer::redis();
  if (!server) BROACH_SKIP("no redis-server on this machine");
  const auto remote = test::remote_at(server->url("redis"));
  std::vector<std::future<bool>> asked;
  for (int i = 0; i < 8; ++i) {
    asked.push_back(std::async(std::launch::async, [&remote, i] {
      Deadline deadline(test::kPatient);
      const auto answer = remote->leases()->take(
          sample().key, "token" + std::to_string(i) + " compile", kLong, deadline);
      return answer && answer->taken;
    }));
  }
  int taken = 0;
  for (auto& answer : asked) taken += answer.get() ? 1 : 0;
  CHECK(taken == 1);
}

}  // namespace broach::cache::remote
