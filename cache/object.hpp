#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "broach/result.hpp"
#include "broach/types.hpp"
#include "cache/digest.hpp"
#include "cache/key.hpp"

namespace broach::cache {

/// What a binary is, in words that an index can be searched by.
struct Description {
  std::string family;       ///< Of kernels, by name.
  std::string target;       ///< "sm_90a", with features
  std::string shape_json;   ///< Canonical JSON object of the shape's parameters.
  std::string source_hash;  ///< 32 hex digits over every source's name and bytes.
  std::string compiler;     ///< The identity that is in the key.
  std::string kind;         ///< "cubin", "code_object", "host_so"

  friend bool operator==(const Description&, const Description&) = default;
};

/// Where a binary came from.
struct Provenance {
  std::int64_t created_unix_ms = 0;
  std::uint32_t compile_ms = 0;
  std::string broach_version;
  std::string toolkit;       ///< For people: "NVRTC 13.0.88 (build 36424714)".
  std::string least_driver;  ///< Least driver that loads it ("CUDA 13.0"), empty if none.
  std::string log;           ///< The compiler's log, whole.

  friend bool operator==(const Provenance&, const Provenance&) = default;
};

/// One self-contained entry of the cache: everything about a binary, and the binary.
struct Object {
  KeyRecord key;
  Description description;
  Provenance provenance;
  std::vector<LaunchLimits> limits;
  std::vector<std::byte> payload;

  friend bool operator==(const Object&, const Object&) = default;
};

/// The version of the object format. A change invalidates caches.
inline constexpr std::uint32_t kObjectFormatVersion = 1;

/// No object is larger; a longer file is not even read.
inline constexpr std::uint64_t kMaxObjectBytes = std::uint64_t{1} << 30;

/// Bytes at the front of an object that say how long its parts are.
inline constexpr std::size_t kObjectHeaderBytes = 80;

/// What an object's first bytes claim; true once `decode` or `decode_head` has agreed.
struct ObjectHeader {
  std::uint64_t file_bytes = 0;
  std::uint64_t payload_offset = 0;  ///< Bytes of header and metadata.
  Digest metadata_digest{};
  Digest payload_digest{};
  Key key;
};

/// Writes an object in the format of docs/cache_format.md.
std::vector<std::byte> encode(const Object& object);

/// Reads an object back, checking magic, version, every length, and both digests.
///
/// Errors:  kDamaged with what did not check out; kUnsupported, reason kNewerFormat.
Result<Object> decode(std::span<const std::byte> bytes);

/// Reads the header alone.
///
/// Errors:  as decode.
Result<ObjectHeader> decode_header(std::span<const std::byte> bytes);

/// Reads everything but the payload from the file's first `payload_offset` bytes. The payload of
/// the object it returns is empty.
///
/// Errors:  as decode.
Result<Object> decode_head(std::span<const std::byte> head);

}  // namespace broach::cache
