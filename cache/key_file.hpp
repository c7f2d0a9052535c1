#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "broach/result.hpp"
#include "cache/signature.hpp"

namespace broach::cache {

/// A public key's file: one line, `broach-public-key-1 <64 digits> <name>`.
///
/// Errors:  kDamaged naming what is wrong, a key that no signature can be checked with included.
Result<PublicKey> parse_public_key(std::string_view text);
std::string to_text(const PublicKey& key);

/// A secret key's file: one line, `broach-secret-key-1 <64 digits> <name>`.
///
/// Errors:  kDamaged naming what is wrong, and never the key.
Result<SecretKey> parse_secret_key(std::string_view text);
std::string to_text(const SecretKey& key);

/// Errors:  kInvalidArgument for a name that no key file can hold.
Result<void> check_key_name(std::string_view name);

/// Reads a public key from wherever it lies: it is trusted by being chosen, not by where it was.
///
/// Errors:  parse_public_key's, with the path; the operating system's.
Result<PublicKey> read_public_key(const std::filesystem::path& path);

/// Reads a secret key from a file that its owner alone can read.
///
/// Errors:  kDenied for a file of others or one that others can read; parse_secret_key's, with the
///          path; the operating system's.
Result<SecretKey> read_secret_key(const std::filesystem::path& path);

/// Writes a new file; one that exists is never replaced. A secret key's has mode 0600.
///
/// Errors:  kInvalidArgument when the file exists; the operating system's.
Result<void> write_public_key(const std::filesystem::path& path, const PublicKey& key);
Result<void> write_secret_key(const std::filesystem::path& path, const SecretKey& key);

}  // namespace broach::cache
