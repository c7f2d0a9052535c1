#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>

#include "cache/remote/lease_board.hpp"
#include "cache/remote/remote.hpp"

namespace broach::cache::remote::test {

/// What a remote holds, for any number of peers. Leases end only when they are given up.
struct Shelf {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<Key, std::string> values;
  std::map<Key, std::string> leases;
  int renewals = 0;
  int failing = 0;  ///< So many exchanges fail from now on.

  /// Waits until what the shelf holds is so.
  template <class Condition>
  bool wait_until(Condition condition) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(60), condition);
  }
};

/// A remote in this process's memory.
class MemoryRemote final : public Remote, public LeaseBoard {
 public:
  explicit MemoryRemote(Shelf& shelf) : shelf_(shelf) {}

  Result<std::optional<std::string>> get(const KeyRecord& key, Deadline&) override {
    const std::lock_guard lock(shelf_.mutex);
    if (fails()) return fault();
    const auto found = shelf_.values.find(key.key);
    if (found == shelf_.values.end()) return std::optional<std::string>{};
    return std::optional<std::string>(found->second);
  }
  Result<void> put(const KeyRecord& key, std::string_view value, Deadline&) override {
    const std::lock_guard lock(shelf_.mutex);
    if (fails()) return fault();
    shelf_.values.insert_or_assign(key.key, value);
    shelf_.changed.notify_all();
    return {};
  }
  Result<bool> has(const KeyRecord& key, Deadline&) override {
    const std::lock_guard lock(shelf_.mutex);
    if (fails()) return fault();
    return shelf_.values.contains(key.key);
  }
  LeaseBoard* leases() noexcept override { return this; }
  const std::string& name() const noexcept override { return name_; }

  Result<Answer> take(const Key& key, std::string_view text, std::chrono::milliseconds,
                      Deadline&) override {
    const std::lock_guard lock(shelf_.mutex);
    if (fails()) return fault();
    const auto [held, taken] = shelf_.leases.try_emplace(key, text);
    shelf_.changed.notify_all();
    return Answer{taken, taken ? "" : held->second};
  }
  Result<bool> renew(const Key& key, std::string_view token, std::string_view text,
                     std::chrono::milliseconds, Deadline&) override {
    const std::lock_guard lock(shelf_.mutex);
    if (fails()) return fault();
    const auto held = shelf_.leases.find(key);
    if (held == shelf_.leases.end() || !held->second.starts_with(token)) return false;
    held->second = text;
    ++shelf_.renewals;
    shelf_.changed.notify_all();
    return true;
  }
  Result<bool> release(const Key& key, std::string_view token, Deadline&) override {
    const std::lock_guard lock(shelf_.mutex);
    if (fails()) return fault();
    const auto held = shelf_.leases.find(key);
    if (held == shelf_.leases.end() || !held->second.starts_with(token)) return false;
    shelf_.leases.erase(held);
    shelf_.changed.notify_all();
    return true;
  }

 private:
  bool fails() { return shelf_.failing > 0 && shelf_.failing-- > 0; }
  static Error fault() { return {ErrorCode::kIo, "memory: planted", "planted"}; }

  Shelf& shelf_;
  std::string name_ = "memory://";
};

}  // namespace broach::cache::remote::test
