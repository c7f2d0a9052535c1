#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "cache/remote/curl.hpp"
#include "cache/remote/redis_reply.hpp"
#include "cache/remote/remote.hpp"

namespace broach::cache::remote {

/// One connection to Redis: hiredis writes and reads the protocol, curl carries it, plain or
/// through TLS, so that every wait has one kind of bound.
///
/// Threads: one at a time.
class RedisStream {
 public:
  /// Connects, presents credentials and selects the database.
  ///
  /// Errors:  as Remote.
  static Result<RedisStream> connect(const Curl& curl, const Access& access, Deadline& deadline);

  /// Sends one command and waits for its reply.
  ///
  /// Errors:  as Remote; the connection is of no use after one. A reply that is an error is not.
  Result<Reply> ask(std::span<const std::string_view> words, Deadline& deadline);

  /// Whether the last failure came before the first byte of a reply: a connection that had waited
  /// too long looks so, and the command may be sent again through a new one.
  bool went_stale() const noexcept { return stale_; }

 private:
  RedisStream(CurlHandle handle, ReplyReader reader, std::string peer)
      : handle_(std::move(handle)), reader_(std::move(reader)), peer_(std::move(peer)) {}

  Result<void> sign_in(const Access& access, Deadline& deadline);
  Result<void> demand_ok(std::span<const std::string_view> words, Deadline& deadline);
  Result<void> send(std::string_view bytes, Deadline& deadline);
  Result<std::size_t> receive(std::span<char> into, Deadline& deadline);
  Result<void> wait(short events, Deadline& deadline) const;
  Error closed() const;

  CurlHandle handle_;
  ReplyReader reader_;
  std::string peer_;
  bool stale_ = false;
};

}  // namespace broach::cache::remote
