#include "tools/contract/harness/digests.hpp"

#include <vector>

#include "tests/support/catch.hpp"

using namespace broach::contract;

TEST_CASE("a digest tells outputs apart by any bit, order and length", "[contract][digests]") {
  const std::vector<std::byte> outputs{std::byte{1}, std::byte{2}, std::byte{3}};
  const std::string digest = digest_of(outputs);
  CHECK(digest.size() == 32);
  CHECK(digest_of(outputs) == digest);
  for (const std::vector<std::byte>& other :
       {std::vector{std::byte{1}, std::byte{2}},
        std::vector{std::byte{2}, std::byte{1}, std::byte{3}},
        std::vector{std::byte{1}, std::byte{2}, std::byte{2}}, std::vector<std::byte>{}}) {
    CHECK(digest_of(other) != digest);
  }
}

TEST_CASE("pinned digests are found by their case's whole name", "[contract][digests]") {
  const PinnedDigests pinned(
      "00112233445566778899aabbccddeeff  one case\n"
      "\n"
      "short  no digest\n"
      "ffeeddccbbaa99887766554433221100  one case, cut");
  CHECK(pinned.of("one case") == "00112233445566778899aabbccddeeff");
  CHECK(pinned.of("one case, cut") == "ffeeddccbbaa99887766554433221100");
  CHECK(pinned.of("one").empty());
  CHECK(pinned.of("no digest").empty());
  CHECK(pinned.names() == std::vector<std::string_view>{"one case", "one case, cut"});
}
