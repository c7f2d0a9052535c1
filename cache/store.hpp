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
#include "cache/object_signatures.hpp"
#include "cache/object_source.hpp"
#include "cache/quarantine.hpp"
#include "cache/reporter.hpp"
#include "cache/trusted_keys.hpp"

namespace broach::cache {

enum class Access : std::uint8_t { kReadWrite, kReadOnly };

/// The detail of an error that is one folder's of objects, not the directory's.
inline constexpr std::string_view kShelf = "shelf";

/// The objects of one directory: one file a key, found by name alone.
///
/// Faults of the file system are reported and are misses; a damaged object is set aside.
///
/// Threads: any.
/// Source:  docs/cache_format.md.
class Store : public ObjectSource {
 public:
  /// `trusted` is asked about the objects of a directory whose trust is kSigned.
  Store(Directory& directory, Access access, Reporter& reporter,
        const TrustedKeys* trusted = nullptr);

  std::optional<Object> find(const KeyRecord& key) override;

  /// Errors:  kDamaged (set aside); kDenied for a signature that is missing or wrong; kUnsupported;
  ///          the operating system's.
  Result<std::optional<Object>> read(const Key& key) override;

  /// What is damaged is set aside where that is possible.
  Result<void> verify(const Key& key) override;

  /// Nothing is set aside.
  Result<StoredHead> read_head(const Key& key) override;

  /// Stores an encoded object durably; readers see the whole of it or nothing.
  ///
  /// Errors:  the operating system's; kIo with detail kShelf where only this key's folder refuses.
  Result<void> put(const Key& key, std::span<const std::byte> encoded);

  /// Errors:  the operating system's; removing what is not there succeeds.
  Result<void> remove(const Key& key);

  /// Signs a stored object, after checking it whole.
  ///
  /// Errors:  as `read`; kNotFound.
  Result<void> sign(const Key& key, const SecretKey& signer);

  void set_aside(const Key& key, std::string_view why);

  Result<std::vector<StoredObject>> list(std::string_view hex_prefix = "",
                                         std::vector<Error>* unread = nullptr) override;

  /// Removes what dead writers left; says how many files.
  std::size_t sweep();

  bool read_only() const noexcept { return access_ == Access::kReadOnly; }

 private:
  struct Loaded {
    OpenFile file;
    std::vector<std::byte> bytes;
    Result<Object> object;
  };

  Result<std::shared_ptr<const Fd>> shelf(const Key& key, IfMissing if_missing);
  std::string path_of(const Key& key) const;
  Result<Loaded> load(const Key& key);
  Result<void> check_signed(const Key& key, std::span<const std::byte> bytes);
  /// Only what serves a request counts as a use of the object.
  enum class LoadFor : std::uint8_t { kUse, kCheck };
  Result<std::optional<Object>> load_checked(
      const Key& key, LoadFor purpose, const std::function<Result<void>(const Object&)>& fits);
  Result<void> list_shelf(const std::string& label, std::string_view hex_prefix,
                          std::vector<StoredObject>& objects);
  Result<void> put_once(const Key& key, std::span<const std::byte> encoded);
  bool set_aside_file(const Key& key, const OpenFile* file, std::string_view why);
  bool known_bad(const Key& key);

  Directory& directory_;
  Access access_;
  Reporter& reporter_;
  const TrustedKeys* trusted_;
  Quarantine quarantine_;
  ObjectSignatures signatures_;
  std::mutex mutex_;
  std::set<Key> bad_;  ///< Damaged, and could not be moved away: not looked at again.
};

}  // namespace broach::cache
