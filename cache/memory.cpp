#include "cache/memory.hpp"

#include <utility>

namespace broach::cache {

std::shared_ptr<const Object> MemoryLayer::use(Slot& slot) {
  order_.splice(order_.begin(), order_, slot.position);
  return slot.object;
}

std::shared_ptr<const Object> MemoryLayer::find(const KeyRecord& key) {
  const std::lock_guard lock(mutex_);
  const auto found = slots_.find(key.key);
  if (found == slots_.end() || found->second.object->key.stream != key.stream) return nullptr;
  return use(found->second);
}

std::shared_ptr<const Object> MemoryLayer::find(const Key& key) {
  const std::lock_guard lock(mutex_);
  const auto found = slots_.find(key);
  return found == slots_.end() ? nullptr : use(found->second);
}

std::shared_ptr<const Object> MemoryLayer::insert(Object object) {
  auto kept = std::make_shared<const Object>(std::move(object));
  const Key key = kept->key.key;
  const std::uint64_t bytes =
      kept->payload.size() + kept->key.stream.size() + kept->provenance.log.size();
  const std::lock_guard lock(mutex_);
  if (const auto old = slots_.find(key); old != slots_.end()) remove(old);
  order_.push_front(key);
  slots_.emplace(key, Slot{kept, bytes, order_.begin()});
  bytes_ += bytes;
  while (bytes_ > byte_budget_ && slots_.size() > 1) remove(slots_.find(order_.back()));
  return kept;
}

void MemoryLayer::erase(const Key& key) {
  const std::lock_guard lock(mutex_);
  if (const auto found = slots_.find(key); found != slots_.end()) remove(found);
}

void MemoryLayer::remove(Slots::iterator slot) {
  bytes_ -= slot->second.bytes;
  order_.erase(slot->second.position);
  slots_.erase(slot);
}

std::vector<std::shared_ptr<const Object>> MemoryLayer::objects() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<const Object>> all;
  all.reserve(slots_.size());
  for (const auto& [key, slot] : slots_) all.push_back(slot.object);
  return all;
}

}  // namespace broach::cache
