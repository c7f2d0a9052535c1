#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "broach/result.hpp"
#include "cache/key.hpp"

namespace broach::cache::remote {

enum class Protocol : std::uint8_t { kHttp, kRedis };
enum class Security : std::uint8_t { kPlain, kTls };

/// What a remote's URL says, in parts. `name` is the only one for people: it holds no secret.
struct Address {
  Protocol protocol = Protocol::kHttp;
  Security security = Security::kPlain;
  std::string host;  ///< Without the brackets of an IPv6 address.
  std::uint16_t port = 0;
  std::string user;      ///< Decoded; empty where the URL has none.
  std::string password;  ///< Decoded.
  std::string path;      ///< HTTP: as written, "/" at least.
  std::string query;     ///< HTTP: as written, without "?".
  std::uint32_t database = 0;
  std::string name;  ///< "redis://cache.example:6379/0"
};

/// Reads `redis://`, `rediss://`, `http://` or `https://[user[:password]@]host[:port][/path]`.
///
/// Errors:  kInvalidArgument with the part that cannot be read; a secret is never repeated.
Result<Address> parse_address(std::string_view url);

/// "https://host:port" of a connection, which for Redis is a stream that curl opens.
std::string origin_of(const Address& address);

/// The URL of one object. `{key}` in path or query stands for the key's 32 digits, and `{sha256}`
/// for the SHA-256 of the key's fields, which stores that name by 64 digits take; a URL with
/// neither is a folder.
std::string object_url(const Address& address, const KeyRecord& key);

}  // namespace broach::cache::remote
