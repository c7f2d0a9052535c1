#include <cstdlib>
#include <string>

#include "cache/remote/address.hpp"
#include "tests/fuzz/target.hpp"

// A remote's URL: its name reads as the same place, and an object's URL leads nowhere else.
BROACH_FUZZ_TARGET(remote_address) {
  using namespace broach::cache;
  using namespace broach::cache::remote;
  const auto address = parse_address(broach::fuzz::as_text(data, size));
  if (!address) return 0;
  const auto named = parse_address(address->name);
  if (!named || named->protocol != address->protocol || named->security != address->security ||
      named->host != address->host || named->port != address->port ||
      named->path != address->path || named->database != address->database ||
      !named->password.empty() || !named->user.empty()) {
    std::abort();
  }
  if (address->protocol != Protocol::kHttp) return 0;
  static const KeyRecord key = KeyBuilder().field("name", "value").finish();
  const std::string url = object_url(*address, key);
  const auto again = parse_address(url);
  if (!url.starts_with(origin_of(*address) + '/') || !again || again->host != address->host ||
      again->port != address->port || !again->user.empty()) {
    std::abort();
  }
  return 0;
}
