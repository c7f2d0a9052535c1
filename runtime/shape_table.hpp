#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace broach::runtime {

/// A map from a shape to what was made for it that is read at every request and written once a
/// shape.
///
/// A reader takes no lock and writes nothing: it probes an immutable-size open-addressed table of
/// pointers to entries that never move. A table that fills up is replaced by one twice its size;
/// the old ones stay until the map goes, since a reader may be inside them, and add up to less than
/// the newest.
///
/// Threads: any.
/// Owns:    entries, until it is destroyed.
template <class Shape, class Value, std::uint64_t (*kHash)(const Shape&) noexcept>
class ShapeTable {
 public:
  ShapeTable() { grow(); }
  ShapeTable(const ShapeTable&) = delete;
  ShapeTable& operator=(const ShapeTable&) = delete;

  const Value* find(const Shape& shape) const noexcept {
    const Table& table = *newest_.load(std::memory_order_acquire);
    for (std::size_t at = kHash(shape) & table.mask;; at = (at + 1) & table.mask) {
      const Entry* entry = table.slots[at].load(std::memory_order_acquire);
      if (entry == nullptr) return nullptr;
      if (entry->shape == shape) return &entry->value;
    }
  }

  /// Adds a value, or returns the one that another thread added first.
  const Value& insert(const Shape& shape, Value value) {
    const std::lock_guard lock(writing_);
    if (const Value* found = find(shape)) return *found;
    // Half full at most: a probe ends soon, and always.
    if (2 * (entries_.size() + 1) > tables_.back()->mask + 1) grow();
    entries_.push_back(Entry{shape, std::move(value)});
    place(*tables_.back(), entries_.back());
    return entries_.back().value;
  }

 private:
  struct Entry {
    Shape shape;
    Value value;
  };
  struct Table {
    explicit Table(std::size_t size)
        : mask(size - 1), slots(std::make_unique<std::atomic<const Entry*>[]>(size)) {}
    std::size_t mask;
    std::unique_ptr<std::atomic<const Entry*>[]> slots;
  };

  static void place(Table& table, const Entry& entry) noexcept {
    std::size_t at = kHash(entry.shape) & table.mask;
    while (table.slots[at].load(std::memory_order_relaxed) != nullptr) at = (at + 1) & table.mask;
    table.slots[at].store(&entry, std::memory_order_release);
  }

  void grow() {
    const std::size_t size = tables_.empty() ? 64 : 2 * (tables_.back()->mask + 1);
    tables_.push_back(std::make_unique<Table>(size));
    for (const Entry& entry : entries_) place(*tables_.back(), entry);
    newest_.store(tables_.back().get(), std::memory_order_release);
  }

  std::mutex writing_;
  std::deque<Entry> entries_;
  std::vector<std::unique_ptr<Table>> tables_;
  std::atomic<const Table*> newest_{nullptr};
};

}  // namespace broach::runtime
