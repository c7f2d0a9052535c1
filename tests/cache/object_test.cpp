#include "cache/object.hpp"

#include <algorithm>

#include "cache/limit_fields.hpp"
#include "cache/wire.hpp"
#include "tests/cache/samples.hpp"
#include "tests/support/catch.hpp"

namespace broach::cache {

using test::sample_object;

namespace {

std::string as_text(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// Writes header and digests around sections, as an encoder of another version would.
std::string with_sections(const Object& like, const std::string& sections,
                          const std::string& payload) {
  const auto text = [](const Digest& digest) {
    return std::string(reinterpret_cast<const char*>(digest.data()), digest.size());
  };
  std::string head("BROACH\r\n", 8);
  append_u32(head, kObjectFormatVersion);
  append_u32(head, ~kObjectFormatVersion);
  append_u64(head, kObjectHeaderBytes + sections.size() + payload.size());
  append_u64(head, kObjectHeaderBytes + sections.size());
  const std::string rest = text(digest_of(payload)) + text(like.key.key.bytes) + sections;
  return head + text(digest_of(head, rest)) + rest + payload;
}

// The sections of an encoded object, the payload's own head left out.
std::string sections_of(const Object& object) {
  const std::string file = as_text(encode(object));
  const std::size_t end = file.size() - object.payload.size() - 16;
  return file.substr(kObjectHeaderBytes, end - kObjectHeaderBytes);
}

std::string payload_head(std::size_t bytes) {
  std::string head = "DATA";
  append_u32(head, 1);
  append_u64(head, bytes);
  return head;
}

std::string section(std::string_view tag, std::uint32_t flags, std::string_view body) {
  std::string out(tag);
  append_u32(out, flags);
  append_u64(out, body.size());
  return out.append(body);
}

}  // namespace

TEST_CASE("an object reads back as it was written", "[cache][object]") {
  const std::size_t bytes = GENERATE(std::size_t{0}, std::size_t{1}, std::size_t{100'000});
  const Object object = sample_object("a", bytes);
  const auto back = decode(encode(object));
  REQUIRE(back);
  CHECK(*back == object);
}

TEST_CASE("a stated geometry and parameters read back as they were written", "[cache][object]") {
  Object object = sample_object("a");
  LaunchLimits& limits = object.limits[0];
  limits.block_x = 32;
  limits.block_y = 4;
  limits.block_z = 2;
  limits.dynamic_shared = 98304;
  limits.cluster_x = 2;
  limits.cluster_y = limits.cluster_z = 1;
  limits.parameter_bytes = {8, 20001, 4};
  object.limits[1].parameter_bytes.emplace();  // Known to be none.
  const auto back = decode(encode(object));
  REQUIRE(back);
  CHECK(back->limits == object.limits);
  CHECK_FALSE(decode(encode(sample_object("a")))->limits[0].parameter_bytes);
}

TEST_CASE("parameters that are no list of sizes are damage", "[cache][object]") {
  CHECK(parameters_of("8,8,4") == std::vector<std::uint32_t>{8, 8, 4});
  CHECK(parameters_of("") == std::vector<std::uint32_t>{});
  CHECK(parameter_text({8, 8, 4}) == "8,8,4");
  for (const char* text : {",", "8,", ",8", "8,,8", "-8", "8 8", "4294967296", "x"}) {
    CAPTURE(text);
    CHECK_FALSE(parameters_of(text));
    const Object object = sample_object("a");
    std::string body;
    append_field(body, "function", "decode_part");
    append_field(body, kParameterField, text);
    std::string sections = sections_of(object);
    sections.resize(sections.find("LIMS"));
    sections += section("LIMS", 1, body) + payload_head(1);
    const auto read = decode(as_bytes(with_sections(object, sections, "x")));
    REQUIRE_FALSE(read);
    CHECK(read.error().code == ErrorCode::kDamaged);
    CHECK(read.error().message.find("parameter_bytes") != std::string::npos);
  }
}

TEST_CASE("an object's head reads back without its payload", "[cache][object]") {
  Object object = sample_object("a");
  const std::vector<std::byte> file = encode(object);
  const auto header = decode_header(file);
  REQUIRE(header);
  CHECK(header->file_bytes == file.size());
  const auto head = decode_head(std::span(file).first(header->payload_offset));
  REQUIRE(head);
  object.payload.clear();
  CHECK(*head == object);
}

TEST_CASE("equal objects have equal bytes", "[cache][object]") {
  CHECK(encode(sample_object("a")) == encode(sample_object("a")));
}

TEST_CASE("an object cut at any byte is damaged", "[cache][object]") {
  const std::vector<std::byte> file = encode(sample_object("a", 64));
  for (std::size_t cut = 0; cut < file.size(); ++cut) {
    const auto read = decode(std::span(file).first(cut));
    REQUIRE_FALSE(read);
    REQUIRE(read.error().code == ErrorCode::kDamaged);
  }
}

TEST_CASE("an object with any one bit turned is damaged", "[cache][object]") {
  std::vector<std::byte> file = encode(sample_object("a", 64));
  for (std::size_t bit = 0; bit < 8 * file.size(); ++bit) {
    const std::byte mask{static_cast<unsigned char>(1U << (bit % 8))};
    file[bit / 8] ^= mask;
    const auto read = decode(file);
    REQUIRE_FALSE(read);
    REQUIRE(read.error().code == ErrorCode::kDamaged);
    file[bit / 8] ^= mask;
  }
  CHECK(decode(file));
}

TEST_CASE("bytes after an object's end are damage", "[cache][object]") {
  std::vector<std::byte> file = encode(sample_object("a"));
  file.push_back(std::byte{0});
  const auto read = decode(file);
  REQUIRE_FALSE(read);
  CHECK(read.error().code == ErrorCode::kDamaged);
}

TEST_CASE("a newer format is unsupported, not damaged", "[cache][object]") {
  std::string file = as_text(encode(sample_object("a")));
  std::string version;
  append_u32(version, kObjectFormatVersion + 1);
  append_u32(version, ~(kObjectFormatVersion + 1));
  std::copy(version.begin(), version.end(), file.begin() + 8);
  const auto read = decode(as_bytes(file));
  REQUIRE_FALSE(read);
  CHECK(read.error().code == ErrorCode::kUnsupported);
}

TEST_CASE("a section of a later minor change is skipped unless it is required", "[cache][object]") {
  const Object object = sample_object("a", 8);
  const std::string payload(8, 'p');
  const std::string known = sections_of(object);
  const std::string optional =
      with_sections(object, known + section("NEWS", 0, "later") + payload_head(8), payload);
  const auto skipped = decode(as_bytes(optional));
  REQUIRE(skipped);
  CHECK(skipped->description == object.description);

  const std::string required =
      with_sections(object, known + section("NEWS", 1, "later") + payload_head(8), payload);
  const auto refused = decode(as_bytes(required));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kUnsupported);
  CHECK(refused.error().message.find("NEWS") != std::string::npos);
}

TEST_CASE("sections that lie behind right digests are still checked", "[cache][object]") {
  const Object object = sample_object("a", 8);
  const std::string payload(8, 'p');
  const std::string known = sections_of(object);
  const auto damaged = [&](const std::string& sections) {
    const auto read = decode(as_bytes(with_sections(object, sections, payload)));
    return !read && read.error().code == ErrorCode::kDamaged;
  };
  CHECK_FALSE(damaged(known + payload_head(8)));
  CHECK(damaged(known + payload_head(9)));
  CHECK(damaged(known));
  CHECK(damaged(known + section("KEYS", 1, object.key.stream) + payload_head(8)));
  CHECK(damaged(section("DESC", 1, "") + payload_head(8)));
  CHECK(damaged(known + std::string("NEWS") + std::string(12, '\xff') + payload_head(8)));

  Object other = object;
  other.key.stream = test::sample_key("b").stream;  // Fields that do not have this key.
  CHECK(damaged(sections_of(other) + payload_head(8)));

  std::string limits;
  append_field(limits, "function", "f");
  append_field(limits, "registers", "4294967296");
  const std::string head = known.substr(0, known.find("LIMS"));
  CHECK(damaged(head + section("LIMS", 1, limits) + payload_head(8)));
}

TEST_CASE("a file of a gigabyte's claim is refused before it is believed", "[cache][object]") {
  std::string file = as_text(encode(sample_object("a", 8)));
  for (std::size_t i = 16; i < 24; ++i) file[i] = '\x7f';
  const auto read = decode(as_bytes(file));
  REQUIRE_FALSE(read);
  CHECK(read.error().code == ErrorCode::kDamaged);
}

}  // namespace broach::cache
