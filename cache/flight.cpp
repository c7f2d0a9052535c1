#include "cache/flight.hpp"

#include <unistd.h>

#include <exception>
#include <new>
#include <string>

namespace broach::cache {
namespace {

Result<Hit> guarded(const std::function<Result<Hit>()>& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::kOutOfMemory, "no memory to make a binary", ""};
  } catch (const std::exception& thrown) {
    return Error{ErrorCode::kInternal, std::string("making a binary threw: ") + thrown.what(), ""};
  } catch (...) {
    return Error{ErrorCode::kInternal, "making a binary threw", ""};
  }
}

}  // namespace

Flights::Landed Flights::run(const Key& key, const std::function<Result<Hit>()>& work) {
  std::promise<Result<Hit>> promise;
  std::shared_future<Result<Hit>> joined;
  {
    const std::lock_guard lock(mutex_);
    if (owner_ != getpid()) under_way_.clear();
    owner_ = getpid();
    if (const auto found = under_way_.find(key); found != under_way_.end()) {
      joined = found->second;
    } else {
      under_way_.emplace(key, promise.get_future().share());
    }
  }
  if (joined.valid()) return {joined.get(), Role::kJoined};
  Result<Hit> result = guarded(work);
  {
    const std::lock_guard lock(mutex_);
    under_way_.erase(key);
  }
  promise.set_value(result);
  return {std::move(result), Role::kLed};
}

}  // namespace broach::cache
