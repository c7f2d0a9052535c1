#include "cache/remote/curl.hpp"

#include <array>

#include "tests/support/catch.hpp"

namespace broach::cache::remote {

TEST_CASE("a machine without libcurl is told what was tried, and one with it has it",
          "[cache][remote][curl]") {
  // The second is a library, and not curl.
  constexpr std::array kFiles{"libbroach-no-such-curl.so.4", "libc.so.6"};
  const auto missing = Curl::load(kFiles);
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == ErrorCode::kNotFound);
  CHECK(missing.error().message.find("libcurl") != std::string::npos);
  for (const char* file : kFiles) {
    CHECK(missing.error().detail.find(file) != std::string::npos);
  }
  const auto curl = Curl::open();
  if (!curl) BROACH_SKIP("no libcurl on this machine");
  CHECK((*curl)->easy_init != nullptr);
}

}  // namespace broach::cache::remote
