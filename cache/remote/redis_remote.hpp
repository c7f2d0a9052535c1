#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "cache/remote/curl.hpp"
#include "cache/remote/lease_board.hpp"
#include "cache/remote/pool.hpp"
#include "cache/remote/redis_stream.hpp"
#include "cache/remote/remote.hpp"

namespace broach::cache::remote {

/// Values in Redis under `broach:1:object:<key>`, leases under `broach:1:lease:<key>`.
///
/// Threads: any.
/// Source:  docs/remote.md ("Redis").
class RedisRemote final : public Remote, public LeaseBoard {
 public:
  RedisRemote(const Curl& curl, remote::Access access) : curl_(curl), access_(std::move(access)) {}

  Result<std::optional<std::string>> get(const KeyRecord& key, Deadline& deadline) override;
  Result<void> put(const KeyRecord& key, std::string_view value, Deadline& deadline) override;
  Result<bool> has(const KeyRecord& key, Deadline& deadline) override;
  LeaseBoard* leases() noexcept override { return this; }
  const std::string& name() const noexcept override { return access_.address.name; }

  Result<Answer> take(const Key& key, std::string_view text, std::chrono::milliseconds time,
                      Deadline& deadline) override;
  Result<bool> renew(const Key& key, std::string_view token, std::string_view text,
                     std::chrono::milliseconds time, Deadline& deadline) override;
  Result<bool> release(const Key& key, std::string_view token, Deadline& deadline) override;

 private:
  /// Sends a command through a connection that waits, else a new one.
  Result<Reply> ask(std::span<const std::string_view> words, Deadline& deadline);

  const Curl& curl_;
  remote::Access access_;
  Pool<RedisStream> idle_;
};

}  // namespace broach::cache::remote
