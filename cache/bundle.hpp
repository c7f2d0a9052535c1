#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "broach/result.hpp"
#include "cache/bundle_format.hpp"
#include "cache/cache.hpp"
#include "cache/fd.hpp"
#include "cache/filesystem.hpp"
#include "cache/object.hpp"
#include "cache/object_source.hpp"
#include "cache/trusted_keys.hpp"

namespace broach::cache {

/// Many objects in one compressed file, each of which can be read alone.
///
/// The head and index are read, authenticated and kept when it is opened; an object's frame is
/// held against the index's digest before it is decompressed. So the file may lie anywhere: who
/// changes it afterwards brings about a miss, never other bytes.
///
/// Threads: any.
/// Owns:    the open file.
/// Source:  docs/cache_format.md ("Bundles").
class Bundle {
 public:
  /// Errors:  kDamaged (another file, truncated, a changed byte, an entry twice); kUnsupported;
  ///          kLimitExceeded for what claims too much; kDenied for a wrong, untrusted or missing
  ///          signature, an unsafe owner or mode, or an entry that climbs out of the cache;
  ///          kNotFound; the operating system's. Each names the file.
  static Result<std::unique_ptr<Bundle>> open(const std::filesystem::path& path,
                                              const TrustedKeys& trusted, BundleTrust trust);

  const std::vector<BundleEntry>& entries() const noexcept { return front_.entries; }
  const BundleHead& head() const noexcept { return front_.head; }
  const std::filesystem::path& path() const noexcept { return path_; }

  /// Who signed it; absent under kOwner when no trusted key did.
  const std::optional<PublicKey>& signed_by() const noexcept { return signed_by_; }

  Filesystem filesystem() const { return filesystem_of(file_.get()); }

  const BundleEntry* entry(const Key& key) const;

  /// An object's encoded bytes, checked against the index.
  ///
  /// Errors:  kDamaged naming the entry and the file; the operating system's.
  Result<std::vector<std::byte>> encoded(const BundleEntry& entry) const;

  /// The object, checked whole.
  Result<Object> object(const BundleEntry& entry) const;

  /// The object without its payload.
  Result<StoredHead> object_head(const BundleEntry& entry) const;

 private:
  Bundle(std::filesystem::path path, Fd file) : path_(std::move(path)), file_(std::move(file)) {}

  Result<void> open_front(std::uint64_t size, const TrustedKeys& trusted, BundleTrust trust);
  Result<std::vector<std::byte>> frame(const BundleEntry& entry) const;
  Error about(const BundleEntry& entry, const Error& error) const;

  std::filesystem::path path_;
  Fd file_;
  BundleFront front_;
  std::optional<PublicKey> signed_by_;
};

}  // namespace broach::cache
