#include "cache/flight.hpp"

#include <unistd.h>

#include <exception>
#include <new>
#include <string>

namespace broach::cache {
namespace {

// Short enough to need no memory itself.
Error no_memory() { return Error{ErrorCode::kOutOfMemory, "no host memory", ""}; }

Result<Hit> guarded(const std::function<Result<Hit>()>& work) noexcept {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return no_memory();
  } catch (const std::exception& thrown) {
    try {
      return Error{ErrorCode::kInternal, std::string("making a binary threw: ") + thrown.what(),
                   ""};
    } catch (const std::bad_alloc&) {
      return no_memory();
    }
  } catch (...) {
    return Error{ErrorCode::kInternal, "it threw", ""};
  }
}

// Those who wait get an answer even where there is no memory to copy it.
void tell(std::promise<Result<Hit>>& promise, const Result<Hit>& result) noexcept {
  try {
    promise.set_value(result);
  } catch (const std::bad_alloc&) {
    promise.set_value(no_memory());
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
  tell(promise, result);
  return {std::move(result), Role::kLed};
}

}  // namespace broach::cache
