#pragma once

#include <memory>
#include <string>

#include "broach/result.hpp"
#include "cache/directory.hpp"
#include "cache/key.hpp"
#include "cache/signature.hpp"

namespace broach::cache {

/// The signatures beside a directory's objects, one file a key: `signatures/ab/abcdef…`. They make
/// a directory of another user's usable to those who trust the signer.
///
/// Threads: any.
/// Source:  docs/cache_format.md ("Signatures").
class ObjectSignatures {
 public:
  explicit ObjectSignatures(Directory& directory) : directory_(directory) {}

  /// Errors:  kNotFound when there is none; decode_signature's; the operating system's.
  Result<Signature> read(const Key& key);

  /// Errors:  the operating system's.
  Result<void> write(const Key& key, const Signature& signature);

  /// Forgets the signature of an object that is no more what was signed.
  void remove(const Key& key);

 private:
  Result<std::shared_ptr<const Fd>> shelf(const Key& key, IfMissing if_missing);
  std::string path_of(const Key& key) const;

  Directory& directory_;
};

}  // namespace broach::cache
