#include "cache/key.hpp"

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
