#include "cache/remote/http_remote.hpp"
#include "cache/remote/redis_remote.hpp"
#include "cache/remote/remote.hpp"

namespace broach::cache::remote {

Result<std::unique_ptr<Remote>> open_remote(Access access) {
  const auto curl = Curl::open();
  if (!curl) return curl.error();
  if (access.address.protocol == Protocol::kRedis) {
    return std::unique_ptr<Remote>(std::make_unique<RedisRemote>(**curl, std::move(access)));
  }
  return std::unique_ptr<Remote>(std::make_unique<HttpRemote>(**curl, std::move(access)));
}

}  // namespace broach::cache::remote
