#include "tools/contract/sage_exact/inputs.hpp"

#include "tests/tools/sage_exact/support.hpp"

namespace broach::contract::sage_exact {

TEST_CASE("the generator gives the golden files' sample elements", "[tools][sage_exact]") {
  CHECK(mixed(0) == 0xe220a8397b1dcdafU);
  const InputRule rule{4, 2, 1, 1};
  const std::uint16_t of_q[] = {0x3f0f, 0xbf43, 0xbf94, 0xbcaf, 0xbfc1, 0xbfa6, 0x3f37, 0xbf6f};
  const std::uint16_t of_k[] = {0xc024, 0x3f13, 0x3e44, 0xbfc0, 0xbf82, 0x3f08, 0x3ed2, 0x3f71};
  for (std::size_t i = 0; i < 8; ++i) {
    CHECK(input_at(rule, 0, i) == of_q[i]);
    CHECK(input_at(rule, 0, 256 + i) == of_k[i]);
  }
}

TEST_CASE("every small golden input has its digest, the adversarial changes applied",
          "[tools][sage_exact]") {
  std::size_t checked = 0;
  for (const GoldenCase& golden : test::golden()) {
    if (golden.rule.tokens > 1024) continue;
    const std::vector<std::uint16_t> input = make_input(golden);
    INFO(golden.name);
    CHECK(sha256_of(input.data(), input.size() * 2) == golden.digest("input_qkv"));
    // Without its changes an adversarial input is another.
    if (!golden.changes.empty()) {
      const std::vector<std::uint16_t> plain = make_input(golden.rule);
      CHECK(sha256_of(plain.data(), plain.size() * 2) != golden.digest("input_qkv"));
    }
    ++checked;
  }
  CHECK(checked == 13);
}

TEST_CASE("another seed, head count or multiplier gives another input", "[tools][sage_exact]") {
  const std::vector<std::uint16_t> input = make_input({16, 2, 1, 1});
  CHECK(make_input({16, 2, 2, 1}) != input);
  const std::vector<std::uint16_t> scaled = make_input({16, 2, 1, 8});
  // q is multiplied, k and v are not.
  CHECK(scaled[0] == input[0] + (3U << 7));
  CHECK(scaled[256] == input[256]);
  CHECK(scaled[512] == input[512]);
}

}  // namespace broach::contract::sage_exact
