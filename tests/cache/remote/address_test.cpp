#include "cache/remote/address.hpp"

#include "tests/support/catch.hpp"

namespace broach::cache::remote {
namespace {

KeyRecord sample() { return KeyBuilder().field("family", "window_rows").finish(); }

}  // namespace

TEST_CASE("a remote's URL is read into its parts", "[cache][remote][address]") {
  const auto http = parse_address("https://ci:p%40ss@cache.example:8443/kernels?sv=1&sig=s3cret");
  REQUIRE(http);
  CHECK(http->protocol == Protocol::kHttp);
  CHECK(http->security == Security::kTls);
  CHECK(http->host == "cache.example");
  CHECK(http->port == 8443);
  CHECK(http->user == "ci");
  CHECK(http->password == "p@ss");
  CHECK(http->path == "/kernels");
  CHECK(http->query == "sv=1&sig=s3cret");
  CHECK(http->name == "https://cache.example:8443/kernels");

  const auto redis = parse_address("rediss://[::1]/3");
  REQUIRE(redis);
  CHECK(redis->protocol == Protocol::kRedis);
  CHECK(redis->host == "::1");
  CHECK(redis->port == 6379);
  CHECK(redis->database == 3);
  CHECK(parse_address("http://h/a%40b")->path == "/a%40b");
  CHECK(redis->name == "rediss://[::1]:6379/3");
  CHECK(origin_of(*redis) == "https://[::1]:6379");
}

TEST_CASE("a URL that cannot be read is refused in words that repeat no secret",
          "[cache][remote][address]") {
  const std::string url = GENERATE(
      "cache.example", "ftp://cache.example", "http://", "http://host:0", "http://host:70000",
      "http://host:80x", "redis://host/zero", "redis://host/0?x=s3cret", "http://host/a b",
      "http://host/\r\nX: s3cret", "http://host/#s3cret", "http://u:s3cret%zz@host", "http://[::1",
      "http://[s3cret]", "http://[[::1]", "http://good\\evil/", "http://good[evil/", "http://a^b/",
      "http://[::1]x/", "me:s3cret@redis://host", "s3cret://host", "me:s3cret@host/0",
      "redis:/me:s3cret@host", "redis://me:pa/s3cret@host", "http://me:80/s3cret@host/");
  const auto address = parse_address(url);
  REQUIRE_FALSE(address);
  CHECK(address.error().code == ErrorCode::kInvalidArgument);
  CHECK(address.error().message.find("s3cret") == std::string::npos);
}

TEST_CASE("an object's URL is its key under the folder, or where the URL puts it",
          "[cache][remote][address]") {
  const std::string hex = sample().key.hex();
  const auto url = [&](const char* text) { return object_url(*parse_address(text), sample()); };
  CHECK(url("http://h") == "http://h:80/" + hex);
  CHECK(url("http://h/a/") == "http://h:80/a/" + hex);
  CHECK(url("http://h/a?sig=1") == "http://h:80/a/" + hex + "?sig=1");
  CHECK(url("https://h/x/{key}.bin?t=1") == "https://h:443/x/" + hex + ".bin?t=1");
  KeyRecord abc;
  abc.stream = "abc";  // The first example of FIPS 180.
  CHECK(object_url(*parse_address("http://h/ac/{sha256}"), abc) ==
        "http://h:80/ac/ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(url("http://[::1]:8080/a") == "http://[::1]:8080/a/" + hex);
}

}  // namespace broach::cache::remote
