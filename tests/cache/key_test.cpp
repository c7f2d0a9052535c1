#include "cache/key.hpp"

#include <fstream>
#include <sstream>

#include "tests/support/catch.hpp"

namespace broach::cache {

TEST_CASE("a label's end and a value's start cannot be confused", "[cache][key]") {
  const KeyRecord first = KeyBuilder().field("a", "bc").finish();
  const KeyRecord second = KeyBuilder().field("ab", "c").finish();
  CHECK(first.key != second.key);
}

TEST_CASE("a key's stream gives its fields back", "[cache][key]") {
  const KeyRecord record = KeyBuilder().field("family", "window_rows").field("n", 7).finish();
  const auto fields = fields_of(record.stream);
  REQUIRE(fields);
  const std::vector<KeyField> expected{
      {"key_schema", std::to_string(kKeySchemaVersion)}, {"family", "window_rows"}, {"n", "7"}};
  CHECK(*fields == expected);
}

TEST_CASE("a key's digits read back, and other text is refused by name", "[cache][key]") {
  const KeyRecord record = KeyBuilder().field("a", "b").finish();
  const auto back = Key::from_hex(record.key.hex());
  REQUIRE(back);
  CHECK(*back == record.key);
  const auto refused = Key::from_hex("xyz");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("xyz") != std::string::npos);
}

TEST_CASE("keys are what they have always been", "[cache][key]") {
  // Each line: the key, then label=value words. A difference means that every cache is invalid:
  // raise kKeySchemaVersion, say so in the change log, and write the new digests down.
  std::ifstream golden(BROACH_GOLDEN_KEYS);
  REQUIRE(golden);
  int lines = 0;
  for (std::string line; std::getline(golden, line);) {
    if (line.empty() || line.front() == '#') continue;
    std::istringstream words(line);
    std::string hex;
    words >> hex;
    KeyBuilder builder;
    for (std::string word; words >> word;) {
      const std::size_t equals = word.find('=');
      builder.field(word.substr(0, equals), word.substr(equals + 1));
    }
    CHECK(builder.finish().key.hex() == hex);
    ++lines;
  }
  CHECK(lines >= 5);
}

TEST_CASE("any change of a stream changes its key", "[cache][key]") {
  const auto key = [](std::string_view label, std::string_view value, std::string_view last) {
    return KeyBuilder().field(label, value).field("z", last).finish().key;
  };
  const Key base = key("target", "sm_90a", "1");
  CHECK(base != key("target", "sm_90", "1"));
  CHECK(base != key("targes", "sm_90a", "1"));
  CHECK(base != key("target", "sm_90a", "2"));
  CHECK(base != key("target", std::string_view("sm_90a\0", 7), "1"));
  CHECK(base != KeyBuilder().field("z", "1").field("target", "sm_90a").finish().key);
  CHECK(base == key("target", "sm_90a", "1"));
}

TEST_CASE("a cut stream is reported with the offset", "[cache][key]") {
  const KeyRecord record = KeyBuilder().field("family", "window_rows").finish();
  for (std::size_t cut = 1; cut < record.stream.size(); ++cut) {
    const auto fields = fields_of(std::string_view(record.stream).substr(0, cut));
    if (fields) continue;  // A cut between fields is a shorter, valid stream.
    CHECK(fields.error().code == ErrorCode::kDamaged);
  }
  CHECK_FALSE(fields_of("short"));
}

}  // namespace broach::cache
