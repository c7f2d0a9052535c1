#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "broach/result.hpp"
#include "cache/key.hpp"
#include "cache/object.hpp"

namespace broach::cache {

/// An object as its place shows it, without being read.
struct StoredObject {
  Key key;
  std::uint64_t bytes = 0;
  std::int64_t used_unix_ms = 0;
};

/// The front of a stored object.
struct StoredHead {
  Object object;  ///< Without payload.
  ObjectHeader header;
};

/// Where objects lie and are found by name: a directory, or a bundle.
///
/// Faults of the storage are reported and are misses; no damaged object is ever returned.
///
/// Threads: any.
class ObjectSource {
 public:
  virtual ~ObjectSource() = default;

  /// The object whose key fields are exactly these, checked whole.
  virtual std::optional<Object> find(const KeyRecord& key) = 0;

  /// The object of a name, whatever its fields say.
  ///
  /// Errors:  kDamaged; kUnsupported; the operating system's.
  virtual Result<std::optional<Object>> read(const Key& key) = 0;

  /// Reads an object again and checks it whole.
  ///
  /// Errors:  as `read`; kNotFound.
  virtual Result<void> verify(const Key& key) = 0;

  /// As `read` without the payload.
  virtual Result<StoredHead> read_head(const Key& key) = 0;

  /// Every object, in the order of the keys; `hex_prefix` narrows it. A part that cannot be read
  /// is counted, told once and added to `unread`; the others are listed.
  virtual Result<std::vector<StoredObject>> list(std::string_view hex_prefix,
                                                 std::vector<Error>* unread = nullptr) = 0;
};

/// An object's place below a cache directory, and its name in a bundle: "objects/ab/abcdef…".
std::string object_name(const Key& key);

/// Says which field of two keys with one name differs first.
std::string first_difference(const KeyRecord& asked, const KeyRecord& stored);

}  // namespace broach::cache
