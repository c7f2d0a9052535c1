#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "broach/result.hpp"
#include "cache/key.hpp"
#include "cache/remote/address.hpp"
#include "cache/remote/deadline.hpp"

namespace broach::cache::remote {

class LeaseBoard;

/// A longer value is not taken: the peer is not trusted with this process's memory.
inline constexpr std::uint64_t kMaxValueBytes = std::uint64_t{64} << 20;

/// A store of values by key on another machine. It moves bytes; what they are worth is judged by
/// whoever asked for them.
///
/// Errors:  kTimedOut, kIo, kDenied (the peer refuses these credentials) or kUnsupported (it does
///          not speak as it should); the detail is one word for a counter: "timed_out", "refused",
///          "tls", "http_503", "protocol", "too_long"…
/// Threads: any.
class Remote {
 public:
  virtual ~Remote() = default;

  /// The value under a key; absent when the store has none.
  virtual Result<std::optional<std::string>> get(const KeyRecord& key, Deadline& deadline) = 0;

  /// Stores a value, replacing what is there.
  virtual Result<void> put(const KeyRecord& key, std::string_view value, Deadline& deadline) = 0;

  /// Whether there is a value; the shortest exchange that passes through all of the peer.
  virtual Result<bool> has(const KeyRecord& key, Deadline& deadline) = 0;

  /// Where the fleet agrees who makes a key; null where the store has no such thing.
  virtual LeaseBoard* leases() noexcept { return nullptr; }

  /// For people; holds no secret.
  virtual const std::string& name() const noexcept = 0;
};

/// What a remote is opened with.
struct Access {
  Address address;
  std::string secret;  ///< Redis: the password. HTTP: a bearer token, or with a user, a password.
  std::string certificates;  ///< A PEM file of authorities; empty: the system's.
};

/// Opens a remote without talking to it.
///
/// Errors:  kNotFound when the library that talks to it cannot be opened, with what was tried.
Result<std::unique_ptr<Remote>> open_remote(Access access);

}  // namespace broach::cache::remote
