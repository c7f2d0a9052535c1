#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "broach/result.hpp"

namespace broach::cache {

/// The version of the key's field grammar. A change invalidates every cache.
inline constexpr std::uint32_t kKeySchemaVersion = 1;

/// The 128-bit name of a compiled binary.
struct Key {
  std::array<std::uint8_t, 16> bytes{};  ///< Most significant first.

  std::string hex() const;  ///< 32 lower-case digits.
  static Result<Key> from_hex(std::string_view digits);

  friend auto operator<=>(const Key&, const Key&) = default;
};

/// One labelled value that shaped a binary.
struct KeyField {
  std::string label;
  std::string value;  ///< Raw bytes.

  friend bool operator==(const KeyField&, const KeyField&) = default;
};

/// A key together with the byte stream it is the digest of.
struct KeyRecord {
  Key key;
  std::string stream;  ///< The encoded fields, as docs/cache_key.md gives them.

  friend bool operator==(const KeyRecord&, const KeyRecord&) = default;
};

/// Builds a key from labelled fields.
///
/// Label and length go into the digest too, so that ("a", "bc") and ("ab", "c") differ; the schema
/// version is the first field.
///
/// Threads: one builder per thread.
/// Source:  docs/cache_key.md; XXH3-128 of the byte stream.
class KeyBuilder {
 public:
  KeyBuilder();
  KeyBuilder& field(std::string_view label, std::string_view value);
  KeyBuilder& field(std::string_view label, std::uint64_t value);  ///< As decimal digits.
  KeyRecord finish();                                              ///< Leaves the builder empty.

 private:
  std::string stream_;
};

/// The key that a byte stream has.
Key key_of_stream(std::string_view stream);

/// Takes a key's byte stream apart.
///
/// Errors:  kDamaged with the offset of the first byte that does not parse.
Result<std::vector<KeyField>> fields_of(std::string_view stream);

}  // namespace broach::cache
