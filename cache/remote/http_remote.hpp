#pragma once

#include <string>
#include <string_view>

#include "cache/remote/curl.hpp"
#include "cache/remote/pool.hpp"
#include "cache/remote/remote.hpp"

namespace broach::cache::remote {

/// A store of files behind GET, PUT and HEAD: WebDAV servers, bazel-remote, S3-compatible stores
/// that take a bearer token or a signed query.
///
/// Threads: any.
/// Source:  docs/remote.md ("HTTP").
class HttpRemote final : public Remote {
 public:
  HttpRemote(const Curl& curl, Access access) : curl_(curl), access_(std::move(access)) {}

  Result<std::optional<std::string>> get(const KeyRecord& key, Deadline& deadline) override;
  Result<void> put(const KeyRecord& key, std::string_view value, Deadline& deadline) override;
  Result<bool> has(const KeyRecord& key, Deadline& deadline) override;
  const std::string& name() const noexcept override { return access_.address.name; }

 private:
  struct Exchange;

  /// Runs a transfer that `exchange` describes; returns the response's status.
  Result<long> run(const KeyRecord& key, Exchange& exchange);

  const Curl& curl_;
  Access access_;
  Pool<CurlHandle> idle_;
};

}  // namespace broach::cache::remote
