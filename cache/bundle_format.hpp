#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "broach/result.hpp"
#include "cache/key.hpp"
#include "cache/signature.hpp"

namespace broach::cache {

/// The version of the bundle format.
inline constexpr std::uint32_t kBundleFormatVersion = 1;

/// What a bundle may claim; more is refused before it is believed.
///
/// Units:   bytes and counts as named; a ratio is object bytes a frame byte.
inline constexpr std::uint64_t kMaxBundleEntries = 1'000'000;
inline constexpr std::uint64_t kMaxBundleIndexBytes = std::uint64_t{128} << 20;
inline constexpr std::uint64_t kMaxBundleObjectBytes = std::uint64_t{256} << 30;
// Compiled kernels shrink to a half or a tenth. What claims more is made to exhaust memory.
inline constexpr std::uint64_t kMaxBundleRatio = 256;
inline constexpr std::uint64_t kAlwaysAllowedObjectBytes = std::uint64_t{1} << 20;

/// One object of a bundle: where its compressed frame lies, and what it must come to.
struct BundleEntry {
  Key key;
  std::uint64_t offset = 0;  ///< In the file; not written: frames follow each other.
  std::uint64_t frame_bytes = 0;
  std::uint64_t object_bytes = 0;
  StrongDigest frame_digest{};

  friend bool operator==(const BundleEntry&, const BundleEntry&) = default;
};

/// Says whether an entry claims what an object can have.
///
/// Errors:  kLimitExceeded for a decompression bomb; kDamaged for what is too short.
Result<void> check_claims(const BundleEntry& entry);

/// The fixed part at a bundle's start.
struct BundleHead {
  std::uint64_t file_bytes = 0;
  std::uint64_t index_bytes = 0;
  std::uint64_t entries = 0;
  std::uint64_t object_bytes = 0;  ///< The sum over all entries.
  std::uint64_t signature_bytes = 0;
  StrongDigest index_digest{};

  std::uint64_t front_bytes() const;  ///< Head, index and signature: where the frames begin.
};

/// Everything before the frames.
struct BundleFront {
  BundleHead head;
  std::vector<BundleEntry> entries;  ///< In the order of the keys.
  std::optional<Signature> signature;
};

inline constexpr std::size_t kBundleHeadBytes = 96;

/// Writes everything before the frames; the entries must be in the order of their keys.
std::string encode_front(std::span<const BundleEntry> entries, const SecretKey* signer);

/// Reads the head alone.
///
/// Errors:  kDamaged; kUnsupported, reason kNewerFormat; kLimitExceeded for claims past the limits.
Result<BundleHead> decode_bundle_head(std::span<const std::byte> bytes);

/// Reads everything before the frames from exactly that many bytes.
///
/// Errors:  as decode_bundle_head; kDenied for an entry whose name is not an object's place.
Result<BundleFront> decode_bundle_front(std::span<const std::byte> bytes);

/// The part of the front that a signature vouches for.
std::span<const std::byte> signed_part(std::span<const std::byte> front, const BundleHead& head);

}  // namespace broach::cache
