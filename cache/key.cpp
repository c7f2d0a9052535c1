#include "cache/key.hpp"

#include <charconv>

#include "cache/digest.hpp"
#include "cache/wire.hpp"

namespace broach::cache {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";

}  // namespace

std::string Key::hex() const {
  std::string out;
  out.reserve(32);
  for (const std::uint8_t byte : bytes) {
    out.push_back(kDigits[byte >> 4]);
    out.push_back(kDigits[byte & 15]);
  }
  return out;
}

Result<Key> Key::from_hex(std::string_view digits) {
  Key key;
  const bool plain = digits.find_first_not_of(kDigits) == std::string_view::npos;
  if (digits.size() != 32 || !plain) {
    return Error{ErrorCode::kInvalidArgument,
                 "key \"" + std::string(digits) + "\" is not 32 lower-case hexadecimal digits", ""};
  }
  for (std::size_t i = 0; i < 16; ++i) {
    std::from_chars(digits.data() + 2 * i, digits.data() + 2 * i + 2, key.bytes[i], 16);
  }
  return key;
}

KeyBuilder::KeyBuilder() { field("key_schema", kKeySchemaVersion); }

KeyBuilder& KeyBuilder::field(std::string_view label, std::string_view value) {
  append_field(stream_, label, value);
  return *this;
}

KeyBuilder& KeyBuilder::field(std::string_view label, std::uint64_t value) {
  char digits[20];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  return field(label, std::string_view(digits, static_cast<std::size_t>(end - digits)));
}

KeyRecord KeyBuilder::finish() {
  KeyRecord record{key_of_stream(stream_), std::move(stream_)};
  stream_.clear();
  return record;
}

Key key_of_stream(std::string_view stream) { return Key{digest_of(stream)}; }

Result<std::vector<KeyField>> fields_of(std::string_view stream) {
  std::vector<KeyField> fields;
  Reader reader(stream);
  while (!reader.at_end()) {
    const std::size_t start = reader.offset();
    const auto label = reader.prefixed();
    const auto value = label ? reader.prefixed() : std::nullopt;
    if (!value) {
      return Error{ErrorCode::kDamaged,
                   "key field at byte " + std::to_string(start) + " of " +
                       std::to_string(stream.size()) + " does not parse",
                   ""};
    }
    fields.push_back({std::string(*label), std::string(*value)});
  }
  return fields;
}

}  // namespace broach::cache
