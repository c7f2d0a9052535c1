#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "broach/result.hpp"
#include "cache/cache.hpp"
#include "cache/directory.hpp"
#include "cache/file.hpp"
#include "cache/object.hpp"
#include "cache/quarantine.hpp"
#include "cache/reporter.hpp"

namespace broach::cache {

enum class Access : std::uint8_t { kReadWrite, kReadOnly };

/// An object as its file shows it, without being read.
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

/// The objects of one directory: one file a key, found by name alone.
///
/// Faults of the file system are reported and are misses; a damaged object is set aside.
///
/// Threads: any.
/// Source:  docs/cache_format.md.
class Store {
 public:
  Store(Directory& directory, Access access, Reporter& reporter);

  /// The object whose key fields are exactly these, checked whole.
  std::optional<Object> find(const KeyRecord& key);

  /// The object of a name, whatever its fields say.
  ///
  /// Errors:  kDamaged (set aside); kUnsupported; the operating system's.
  Result<std::optional<Object>> read(const Key& key);

  /// Reads an object again and checks it whole.
  ///
  /// Errors:  as `read`; kNotFound. What is damaged is set aside where that is possible.
  Result<void> verify(const Key& key);

  /// As `read` without the payload, and nothing is set aside.
  Result<StoredHead> read_head(const Key& key);

  /// Stores an encoded object durably; readers see the whole of it or nothing.
  ///
  /// Errors:  the operating system's, reported already.
  Result<void> put(const Key& key, std::span<const std::byte> encoded);

  /// Errors:  the operating system's; removing what is not there succeeds.
  Result<void> remove(const Key& key);

  void set_aside(const Key& key, std::string_view why);

  /// Every object, in the order of the keys; `hex_prefix` narrows it.
  Result<std::vector<StoredObject>> list(std::string_view hex_prefix = "");

  /// Removes what dead writers left; says how many files.
  std::size_t sweep();

  bool read_only() const noexcept { return access_ == Access::kReadOnly; }

 private:
  struct Loaded {
    OpenFile file;
    Result<Object> object;
  };

  Result<std::shared_ptr<const Fd>> shelf(const Key& key, IfMissing if_missing);
  std::string path_of(const Key& key) const;
  Result<Loaded> load(const Key& key);
  Result<std::optional<Object>> load_checked(
      const Key& key, const std::function<Result<void>(const Object&)>& fits);
  Result<void> put_once(const Key& key, std::span<const std::byte> encoded);
  bool set_aside_file(const Key& key, const OpenFile* file, std::string_view why);
  bool known_bad(const Key& key);

  Directory& directory_;
  Access access_;
  Reporter& reporter_;
  Quarantine quarantine_;
  std::mutex mutex_;
  std::set<Key> bad_;  ///< Damaged, and could not be moved away: not looked at again.
};

}  // namespace broach::cache
