#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "broach/result.hpp"
#include "cache/signature.hpp"

namespace broach::cache {

/// The public keys whose signatures make code usable.
///
/// Threads: any may read.
class TrustedKeys {
 public:
  /// Reads every `*.pub` file of the directories that exist. Each directory, and each file, must
  /// be this user's or root's and writable by its owner alone, or it is passed over.
  ///
  /// Errors:  none: what cannot be trusted is left out, and `problems()` says why.
  static TrustedKeys load(const std::vector<std::filesystem::path>& directories);

  void add(PublicKey key);

  /// The trusted key that signed exactly these bytes as this kind.
  ///
  /// Errors:  kDenied: reason kUntrusted when no trusted key has the signer's name, with where
  ///          keys are looked for; reason kForged when the bytes are not what it signed.
  Result<PublicKey> verify(Signed kind, std::span<const std::byte> bytes,
                           const Signature& signature) const;

  std::vector<PublicKey> keys() const;  ///< In the order of their ids.
  const std::vector<std::string>& problems() const noexcept { return problems_; }

 private:
  void load_directory(const std::filesystem::path& path);

  std::map<SignerId, PublicKey> keys_;
  std::vector<std::string> searched_;
  std::vector<std::string> problems_;
};

/// Puts a public key into a directory of trusted keys, which is made with mode 0700 where it is
/// missing. Returns the file.
///
/// Errors:  kDenied for a directory of another's or that others can write; the operating system's.
Result<std::filesystem::path> trust_key(const std::filesystem::path& directory,
                                        const PublicKey& key);

/// Removes every file of a directory that holds the key of this name (SignerId::hex).
///
/// Errors:  kNotFound when none does; kDenied; the operating system's.
Result<void> distrust_key(const std::filesystem::path& directory, std::string_view id);

}  // namespace broach::cache
