#include "cache/key.hpp"

#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <system_error>

namespace broach::cache {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";

void append_length(std::string& out, std::size_t length) {
  for (int shift = 0; shift < 64; shift += 8) {
    out.push_back(static_cast<char>((static_cast<std::uint64_t>(length) >> shift) & 0xff));
  }
}

void append_field(std::string& out, std::string_view label, std::string_view value) {
  append_length(out, label.size());
  out.append(label);
  append_length(out, value.size());
  out.append(value);
}

// Reads one length-prefixed string at `offset` and moves past it.
bool take(std::string_view stream, std::size_t& offset, std::string& out) {
  if (stream.size() - offset < 8) return false;
  std::uint64_t length = 0;
  for (int i = 7; i >= 0; --i) {
    length = (length << 8) | static_cast<std::uint8_t>(stream[offset + static_cast<unsigned>(i)]);
  }
  if (length > stream.size() - offset - 8) return false;
  out.assign(stream.substr(offset + 8, length));
  offset += 8 + length;
  return true;
}

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
  KeyRecord record;
  const XXH128_hash_t hash = XXH3_128bits(stream_.data(), stream_.size());
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  std::copy_n(canonical.digest, 16, record.key.bytes.begin());
  record.stream = std::move(stream_);
  return record;
}

Result<std::vector<KeyField>> fields_of(std::string_view stream) {
  std::vector<KeyField> fields;
  std::size_t offset = 0;
  while (offset < stream.size()) {
    const std::size_t start = offset;
    KeyField field;
    if (!take(stream, offset, field.label) || !take(stream, offset, field.value)) {
      return Error{ErrorCode::kDamaged,
                   "key field at byte " + std::to_string(start) + " of " +
                       std::to_string(stream.size()) + " does not parse",
                   ""};
    }
    fields.push_back(std::move(field));
  }
  return fields;
}

}  // namespace broach::cache
