#pragma once

#include <sys/types.h>

#include <functional>
#include <future>
#include <map>
#include <mutex>

#include "broach/result.hpp"
#include "cache/cache.hpp"

namespace broach::cache {

/// Lets one thread work for a key while the others that ask wait for its result.
///
/// Threads: any. A child of a fork starts with nothing under way.
class Flights {
 public:
  enum class Role : std::uint8_t { kLed, kJoined };
  struct Landed {
    Result<Hit> result;
    Role role;
  };

  /// Runs `work` for the first asker; the rest get what it returned. What `work` throws becomes an
  /// error.
  Landed run(const Key& key, const std::function<Result<Hit>()>& work);

 private:
  std::mutex mutex_;
  std::map<Key, std::shared_future<Result<Hit>>> under_way_;
  pid_t owner_ = 0;
};

}  // namespace broach::cache
