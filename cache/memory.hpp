#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "cache/key_hash.hpp"
#include "cache/object.hpp"

namespace broach::cache {

/// The objects this process has used, the least recently used dropped first beyond a budget.
///
/// Threads: any.
class MemoryLayer {
 public:
  explicit MemoryLayer(std::uint64_t byte_budget) : byte_budget_(byte_budget) {}

  /// Null when the key's fields are not here, exactly.
  std::shared_ptr<const Object> find(const KeyRecord& key);
  std::shared_ptr<const Object> find(const Key& key);

  /// Keeps an object, however large; returns the one that is kept.
  std::shared_ptr<const Object> insert(Object object);
  void erase(const Key& key);
  std::vector<std::shared_ptr<const Object>> objects() const;

 private:
  using Order = std::list<Key>;
  struct Slot {
    std::shared_ptr<const Object> object;
    std::uint64_t bytes = 0;
    Order::iterator position;
  };

  std::shared_ptr<const Object> use(Slot& slot);
  using Slots = std::unordered_map<Key, Slot, KeyHash>;

  void remove(Slots::iterator slot);

  const std::uint64_t byte_budget_;
  mutable std::mutex mutex_;
  Slots slots_;
  Order order_;  ///< Most recently used first.
  std::uint64_t bytes_ = 0;
};

}  // namespace broach::cache
