#include <chrono>
#include <filesystem>
#include <future>
#include <string>
#include <thread>

#include "tests/cache/remote/live_server.hpp"
#include "tests/cache/remote/remotes.hpp"
#include "tests/cache/remote/scripted_server.hpp"
#include "tests/support/catch.hpp"

namespace broach::cache::remote {
namespace {

using test::LiveServer;
using test::ScriptedServer;

KeyRecord sample() { return KeyBuilder().field("name", "sample").finish(); }

std::string response(const std::string& status, const std::string& body, std::size_t length) {
  return "HTTP/1.1 " + status + "\r\nContent-Length: " + std::to_string(length) + "\r\n\r\n" + body;
}

}  // namespace

TEST_CASE("nginx with WebDAV keeps values", "[cache][remote][http]") {
  const auto server = LiveServer::nginx();
  if (!server) BROACH_SKIP("no nginx on this machine");
  const auto remote = test::remote_at(server->url("http", "/kernels"));
  test::check_keeps_values(*remote);
  CHECK(std::filesystem::exists(server->files() / "kernels" /
                                KeyBuilder().field("name", "kept").finish().key.hex()));
}

TEST_CASE("nginx behind TLS keeps values for those who know its authority",
          "[cache][remote][http]") {
  const broach::test::TempDir dir;
  const auto certificate = test::make_certificate(dir.path());
  if (!certificate) BROACH_SKIP("no openssl program to make a certificate");
  const auto server = LiveServer::nginx_with_tls(*certificate);
  if (!server) BROACH_SKIP("no nginx on this machine");
  const auto knowing = test::remote_at(server->url("https"), "", certificate->certificate.string());
  test::check_keeps_values(*knowing);

  const auto stranger = test::remote_at(server->url("https"));
  const auto refused = test::get(*stranger, sample());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kDenied);
  CHECK(refused.error().detail == "tls");
}

TEST_CASE("a bearer token or a password opens a server, and a wrong one is told apart from a miss",
          "[cache][remote][http]") {
  // base64 of "ci:right"
  const auto server = LiveServer::nginx(
      "      set $known no;\n"
      "      if ($http_authorization = \"Bearer right\") { set $known yes; }\n"
      "      if ($http_authorization = \"Basic Y2k6cmlnaHQ=\") { set $known yes; }\n"
      "      if ($known = no) { return 401; }\n");
  if (!server) BROACH_SKIP("no nginx on this machine");
  test::check_keeps_values(*test::remote_at(server->url("http"), "right"));
  const std::string with_user = "http://ci@127.0.0.1:" + std::to_string(server->port()) + "/b";
  test::check_keeps_values(*test::remote_at(with_user, "right"));

  for (const char* secret : {"", "wrong"}) {
    const auto remote = test::remote_at(server->url("http"), secret);
    const auto found = test::get(*remote, sample());
    REQUIRE_FALSE(found);
    CHECK(found.error().code == ErrorCode::kDenied);
    CHECK(found.error().detail == "http_401");
    CHECK(found.error().message.find("right") == std::string::npos);
    CHECK_FALSE(test::put(*remote, sample(), "value"));
    CHECK_FALSE(test::has(*remote, sample()));
  }
}

TEST_CASE("a server that is down, stalls or stops half-way is an error with its cause",
          "[cache][remote][http]") {
  SECTION("down") {
    const auto remote =
        test::remote_at("http://127.0.0.1:" + std::to_string(test::free_port()) + "/");
    const auto found = test::get(*remote, sample());
    REQUIRE_FALSE(found);
    CHECK(found.error().detail == "refused");
    CHECK(test::put(*remote, sample(), "value").error().detail == "refused");
  }
  SECTION("silent") {
    const ScriptedServer server("", ScriptedServer::Then::kStall);
    const auto remote = test::remote_at(server.url("http"));
    const auto found = test::get(*remote, sample(), test::kImpatient);
    REQUIRE_FALSE(found);
    CHECK(found.error().code == ErrorCode::kTimedOut);
    CHECK(found.error().detail == "timed_out");
  }
  SECTION("stalled after the head") {
    const ScriptedServer server(response("200 OK", "abc", 1000), ScriptedServer::Then::kStall);
    const auto remote = test::remote_at(server.url("http"));
    CHECK(test::get(*remote, sample(), test::kImpatient).error().detail == "timed_out");
  }
  SECTION("killed half-way") {
    const ScriptedServer server(response("200 OK", "abc", 1000), ScriptedServer::Then::kClose);
    const auto remote = test::remote_at(server.url("http"));
    CHECK(test::get(*remote, sample()).error().detail == "closed");
  }
  SECTION("closed without a word") {
    const ScriptedServer server("", ScriptedServer::Then::kClose);
    const auto remote = test::remote_at(server.url("http"));
    CHECK(test::get(*remote, sample()).error().detail == "closed");
  }
}

TEST_CASE("a signed query opens a store of the S3 kind, for the object that the URL names",
          "[cache][remote][http]") {
  const auto server = LiveServer::nginx(
      "      if ($arg_X-Amz-Signature = \"\") { return 400; }\n"
      "      if ($args != \"X-Amz-Expires=600&X-Amz-Signature=s3cret\") { return 403; }\n");
  if (!server) BROACH_SKIP("no nginx on this machine");
  const auto url = [&](const std::string& signature) {
    return server->url("http", "/bucket/{key}.bin?X-Amz-Expires=600&X-Amz-Signature=" + signature);
  };
  test::check_keeps_values(*test::remote_at(url("s3cret")));
  CHECK(std::filesystem::exists(server->files() / "bucket" /
                                (KeyBuilder().field("name", "kept").finish().key.hex() + ".bin")));
  const auto remote = test::remote_at(url("s3cret0"));
  const auto found = test::get(*remote, sample());
  REQUIRE_FALSE(found);
  CHECK(found.error().code == ErrorCode::kDenied);
  CHECK(found.error().detail == "http_403");
  CHECK(found.error().message.find("s3cret") == std::string::npos);
}

TEST_CASE("the layout of bazel-remote takes 64 digits, which a URL gives it",
          "[cache][remote][http]") {
  // The paths that it serves: an optional instance name, ac or cas, and a SHA-256.
  const auto server =
      LiveServer::nginx("      if ($uri !~ \"^/(.*/)?(ac|cas)/[0-9a-f]{64}$\") { return 400; }\n");
  if (!server) BROACH_SKIP("no nginx on this machine");
  test::check_keeps_values(*test::remote_at(server->url("http", "/ac/{sha256}")));
  test::check_keeps_values(*test::remote_at(server->url("http", "/kernels/ac/{sha256}")));
  const auto found = test::get(*test::remote_at(server->url("http", "/ac/")), sample());
  REQUIRE_FALSE(found);
  CHECK(found.error().detail == "http_400");
}

TEST_CASE("a real nginx that is slow or killed half-way through a value is an error",
          "[cache][remote][http]") {
  auto server = LiveServer::nginx("      limit_rate 64k;\n");
  if (!server) BROACH_SKIP("no nginx on this machine");
  const auto remote = test::remote_at(server->url("http"));
  const std::string value(8 << 20, 'v');
  REQUIRE(test::put(*remote, sample(), value));
  SECTION("slow: bytes come, and the whole takes too long") {
    const Patience patience{std::chrono::seconds(30), std::chrono::milliseconds(100)};
    const auto found = test::get(*remote, sample(), patience);
    REQUIRE_FALSE(found);
    CHECK(found.error().detail == "timed_out");
  }
  SECTION("stopped before it answers") {
    server->stop();
    CHECK(test::get(*remote, sample(), test::kImpatient).error().detail == "timed_out");
    server->go_on();
    CHECK(test::has(*remote, sample()).value());
  }
  SECTION("killed half-way") {
    const std::uint64_t before = server->written_bytes();
    auto waiting = std::async(std::launch::async, [&] { return test::get(*remote, sample()); });
    test::wait_until_written(*server, before + 1024, waiting);
    server->kill();
    const auto found = waiting.get();
    REQUIRE_FALSE(found);
    CHECK(found.error().detail == "closed");
  }
}

TEST_CASE("what is no answer to the question is an error, never a value", "[cache][remote][http]") {
  const auto cause = [](const std::string& answer) {
    const ScriptedServer server(answer, ScriptedServer::Then::kClose);
    const auto found = test::get(*test::remote_at(server.url("http")), sample());
    return found ? std::string("none") : found.error().detail;
  };
  CHECK(cause(response("503 Busy", "busy", 4)) == "http_503");
  CHECK(cause(response("206 Partial Content", "part", 4)) == "http_206");
  CHECK(cause("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n") ==
        "http_302");
  CHECK(cause(response("200 OK", "", std::size_t{1} << 40)) == "too_long");
  CHECK(cause("+PONG\r\n") == "protocol");
}

TEST_CASE("an exchange is left when it is asked to stop", "[cache][remote][http]") {
  const ScriptedServer server("", ScriptedServer::Then::kStall);
  const auto remote = test::remote_at(server.url("http"));
  std::stop_source stop;
  std::thread stopper([&] { stop.request_stop(); });
  Deadline deadline(test::kPatient, stop.get_token());
  const auto found = remote->get(sample(), deadline);
  stopper.join();
  REQUIRE_FALSE(found);
  CHECK(found.error().detail == "stopped");
}

}  // namespace broach::cache::remote
