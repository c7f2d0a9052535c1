#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cache/remote/live_server.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/tools/program.hpp"

using namespace broach::test;
using broach::cache::remote::test::free_port;
using broach::cache::remote::test::LiveServer;
using Json = nlohmann::json;

namespace {

/// A program with a remote, and with the key that the fleet signs with.
Program in_fleet(const TempDir& dir, const std::string& url) {
  const std::filesystem::path key = dir.path() / "fleet.key";
  std::ofstream(key) << "broach-secret-key-1 " << std::string(64, '7') << " fleet\n";
  std::filesystem::permissions(key, std::filesystem::perms::owner_read);
  Program program(dir.path());
  program.set("BROACH_REMOTE", url).set("BROACH_SIGNING_KEY", key.string());
  // A machine that runs other tests beside this one is slow, not stalled.
  program.set("BROACH_REMOTE_TIMEOUT_MS", "30000");
  return program;
}

Json document(const Ended& ended) {
  CAPTURE(ended.err, ended.out);
  const Json json = Json::parse(ended.out, nullptr, false);
  REQUIRE_FALSE(json.is_discarded());
  return json;
}

}  // namespace

TEST_CASE("doctor asks each remote and says what it found", "[tools][remotes]") {
  const auto server = LiveServer::redis();
  if (!server) BROACH_SKIP("no redis-server on this machine");
  const TempDir dir;
  const std::string nobody = "http://127.0.0.1:" + std::to_string(free_port()) + "/kernels";
  Program program = in_fleet(dir, server->url("redis") + " " + nobody);

  const Json remotes = document(program.run({"doctor", "--json"}))["remotes"];
  REQUIRE(remotes.size() == 2);
  CHECK(remotes[0]["name"] == server->url("redis", "/0"));
  CHECK(remotes[0]["reachable"] == true);
  CHECK(remotes[0]["latency_ms"] > 0);
  CHECK(remotes[0]["breaker"] == "closed");
  CHECK(remotes[0]["leases"] == true);
  CHECK(remotes[0]["use"] == "read and written");
  CHECK(remotes[1]["reachable"] == false);
  CHECK(remotes[1]["latency_ms"].is_null());
  CHECK(remotes[1]["fault"].get<std::string>().find(nobody) != std::string::npos);

  const std::string text = program.run({"doctor"}).out;
  CHECK(text.find("read and written\n      answers in ") != std::string::npos);
  CHECK(text.find("does not answer: " + nobody) != std::string::npos);

  program.set("BROACH_REMOTE_MODE", "read-only");
  CHECK(program.run({"doctor"}).out.find("only read: ") != std::string::npos);
  program.set("BROACH_REMOTE_MODE", "sometimes");
  CHECK(program.run({"doctor"}).status == 2);
}

TEST_CASE("what one machine has warmed serves the next without a compile", "[tools][remotes]") {
  const auto server = LiveServer::nginx();
  if (!server) BROACH_SKIP("no nginx on this machine");
  const TempDir one;
  const Program first = in_fleet(one, server->url("http", "/kernels"));
  give_warmed_cache(first);
  const Json sent = document(first.run(warm_arguments({"--json"})));
  CHECK(sent["compiled"] == 0);
  CHECK(sent["uploaded"] == sent["requested"]);
  CHECK(sent["not_uploaded"] == 0);
  CHECK(document(first.run(warm_arguments({"--json"})))["uploaded"] == 0);  // It has them.

  const TempDir two;
  const Program second = in_fleet(two, server->url("http", "/kernels"));
  const Json got = document(second.run(warm_arguments({"--json"})));
  CHECK(got["compiled"] == 0);
  CHECK(got["hits"] == sent["requested"]);
  for (const Json& entry : got["entries"]) CHECK(entry["layer"] == "remote");
  const Json again = document(second.run(warm_arguments({"--json"})));
  for (const Json& entry : again["entries"]) CHECK(entry["layer"] == "user");

  // A third asks who would serve the shape.
  std::vector<std::string> words{"explain", "window_rows"};
  for (const auto& [name, value] : got["entries"][0]["shape"].items()) {
    if (name == "family" || name == "checked") continue;
    words.push_back(name + "=" + (value.is_string() ? value.get<std::string>() : value.dump()));
  }
  words.insert(words.end(), {"--target", "host", "--json"});
  const TempDir three;
  const Program third = in_fleet(three, server->url("http", "/kernels"));
  const Json hit = document(third.run(words));
  CHECK(hit["hit"] == true);
  CHECK(hit["layer"]["kind"] == "remote");
  CHECK(hit["layer"]["name"] == server->url("http", "/kernels"));
}

TEST_CASE("a remote that is down costs a warm job nothing but words", "[tools][remotes]") {
  const TempDir dir;
  const Program program = in_fleet(dir, "redis://:s3cret@127.0.0.1:" + std::to_string(free_port()));
  give_warmed_cache(program);
  const Ended ended = program.run(warm_arguments({"--json"}));
  CHECK(ended.status == 0);
  CHECK(document(ended)["not_uploaded"] == document(ended)["requested"]);
  CHECK(ended.err.find("did not reach the remotes") != std::string::npos);
  CHECK((ended.out + ended.err).find("s3cret") == std::string::npos);
}
