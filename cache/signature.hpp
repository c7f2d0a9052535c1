#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "broach/result.hpp"

namespace broach::cache {

/// BLAKE2b-256: names bytes so that nobody can make others with the same name.
using StrongDigest = std::array<std::uint8_t, 32>;

StrongDigest strong_digest_of(std::span<const std::byte> bytes);

/// What a signature vouches for. One kind's signature is none of another's.
enum class Signed : std::uint8_t { kObject, kBundle };

/// The name of a key pair: the first half of BLAKE2b-256 of the public key.
struct SignerId {
  std::array<std::uint8_t, 16> bytes{};

  std::string hex() const;  ///< 32 lower-case digits.

  friend auto operator<=>(const SignerId&, const SignerId&) = default;
};

/// The half of a key pair that checks.
struct PublicKey {
  std::array<std::uint8_t, 32> bytes{};
  std::string name;  ///< For people: "release builds, 2026". At most 64 printable characters.

  SignerId id() const;

  friend bool operator==(const PublicKey&, const PublicKey&) = default;
};

/// Ed25519 over a kind and the BLAKE2b-512 of the signed bytes.
///
/// Source:  docs/cache_format.md ("Signatures"); RFC 8032 through libsodium.
struct Signature {
  SignerId signer;
  std::array<std::uint8_t, 64> bytes{};

  friend bool operator==(const Signature&, const Signature&) = default;
};

/// The length of an encoded signature.
inline constexpr std::size_t kSignatureBytes = 96;

/// Writes a signature as it stands in a bundle, in a file beside an object, or in a remote tier.
std::vector<std::byte> encode(const Signature& signature);

/// Reads it back from bytes that others could have written.
///
/// Errors:  kDamaged with what did not check out; kUnsupported, reason
///          kNewerFormat.
Result<Signature> decode_signature(std::span<const std::byte> bytes);

/// Says whether `key` signed exactly these bytes as this kind.
///
/// Errors:  kDenied, reason kForged, naming the key.
Result<void> check_signature(Signed kind, std::span<const std::byte> bytes,
                             const Signature& signature, const PublicKey& key);

/// The half of a key pair that signs. Its bytes are wiped from memory with it.
///
/// Threads: any may sign.
class SecretKey {
 public:
  static SecretKey generate(std::string name);

  /// The pair that a seed gives, always the same.
  static SecretKey from_seed(std::span<const std::uint8_t, 32> seed, std::string name);

  ~SecretKey();
  SecretKey(const SecretKey& other) = default;
  SecretKey& operator=(const SecretKey&) = default;

  const PublicKey& public_key() const& noexcept { return public_; }
  PublicKey public_key() && { return std::move(public_); }
  std::span<const std::uint8_t, 32> seed() const noexcept { return seed_; }
  Signature sign(Signed kind, std::span<const std::byte> bytes) const;

 private:
  SecretKey() = default;

  PublicKey public_;
  std::array<std::uint8_t, 32> seed_{};
};

}  // namespace broach::cache
