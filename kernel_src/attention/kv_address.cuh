#pragma once

// Where the keys and values of a slot lie in the KV cache.

#include "attention/kv_config.h"
#include "attention/tensors.cuh"
#include "common/platform.cuh"

namespace broach::attention {

/// Key positions, both ends inclusive.
struct KeyRange {
  int first;
  int last;

  /// One comparison: a prefill evaluates it for every score of a partial tile.
  BROACH_DEVICE bool holds(int key) const {
    const auto from = static_cast<unsigned>(first);
    return static_cast<unsigned>(key) - from < static_cast<unsigned>(last) + 1u - from;
  }
  BROACH_DEVICE bool holds_all(int from, int count) const {
    return first <= from && from + count - 1 <= last;
  }
  BROACH_DEVICE bool holds_any(int from, int count) const {
    return first <= from + count - 1 && last >= from;
  }

  // The keys as a list, and the tiles at absolute positions that hold them.
  BROACH_DEVICE int count() const { return last - first + 1; }
  BROACH_DEVICE int at(int i) const { return first + i; }
  template <int kTileKeys>
  BROACH_DEVICE int first_tile() const {
    return first / kTileKeys;
  }
  template <int kTileKeys>
  BROACH_DEVICE int last_tile() const {
    return last / kTileKeys;
  }
  template <int kTileKeys>
  BROACH_DEVICE int tiles() const {
    return last / kTileKeys - first / kTileKeys + 1;
  }
};

/// Where one tensor of the cache has a slot's positions, in elements from a KV head's first.
struct PositionStrides {
  long long slot;
  long long position;
  long long start;  ///< Of the slot.
};

/// The addresses of one slot and KV head.
///
/// Owns:    nothing; the launch's parameters outlive it.
template <KvConfig kConfig>
struct KvAddress {
  const unsigned short* k_head;
  const unsigned short* v_head;
  PositionStrides of_k;
  PositionStrides of_v;
  const int* pages;
  RunTimeLayout run_time;

  BROACH_DEVICE KvAddress(const broach_kv_cache& cache, const RunTimeLayout& layout, int slot,
                          int kv_head)
      : k_head(elements(cache.k) + kv_head * cache.k_head_stride),
        v_head(elements(cache.v) + kv_head * cache.v_head_stride),
        of_k{cache.k_slot_stride, cache.k_position_stride, slot * cache.k_slot_stride},
        of_v{cache.v_slot_stride, cache.v_position_stride, slot * cache.v_slot_stride},
        pages(cache.page_table + slot * cache.page_table_stride),
        run_time(layout) {}

  /// The key or value of a position: D elements.
  BROACH_DEVICE const unsigned short* k(int key) const { return k_head + offset(key, of_k); }
  BROACH_DEVICE const unsigned short* v(int key) const { return v_head + offset(key, of_v); }

  BROACH_DEVICE static Layout layout(const RunTimeLayout& run_time) {
    return kConfig.at_run_time ? static_cast<Layout>(run_time.layout) : kConfig.layout;
  }
  BROACH_DEVICE static int layout_length(const RunTimeLayout& run_time) {
    // A linear layout has no length to divide by.
    constexpr int kLength = kConfig.layout_length > 0 ? kConfig.layout_length : 1;
    return kConfig.at_run_time ? run_time.length : kLength;
  }

  BROACH_DEVICE long long offset(int key, const PositionStrides& strides) const {
    const auto length = static_cast<unsigned>(layout_length(run_time));
    const auto position = static_cast<unsigned>(key);
    if (layout(run_time) == Layout::kPaged) {
      const unsigned page = position / length + (kConfig.page_off_by_one ? 1u : 0u);
      return pages[page] * strides.slot + position % length * strides.position;
    }
    if (layout(run_time) == Layout::kRing) {
      return strides.start + position % length * strides.position;
    }
    return strides.start + key * strides.position;
  }

  /// Whether `count` keys lie a position's stride apart, each behind the one before.
  BROACH_DEVICE bool are_contiguous(int first, int count) const {
    const auto length = static_cast<unsigned>(layout_length(run_time));
    return layout(run_time) == Layout::kLinear ||
           static_cast<unsigned>(first) % length + static_cast<unsigned>(count) <= length;
  }

  /// Ends the launch when a row's slot, positions or pages are out of range (`checked` builds).
  BROACH_DEVICE static void check(Thread thread, const broach_kv_cache& cache,
                                  const RunTimeLayout& run_time, int slot, const KeyRange& keys) {
    if constexpr (kConfig.checked) {
      if (slot < 0 || slot >= cache.slots) {
        fail(thread, "a row's slot is outside 0 to slots - 1", slot);
      }
      if (keys.last < 0) fail(thread, "a row's position is negative", keys.last);
      if (layout(run_time) != Layout::kRing && keys.last >= cache.length) {
        fail(thread, "a row's position is past its slot's length", keys.last);
      }
      if (layout(run_time) == Layout::kPaged) {
        const int length = layout_length(run_time);
        const int* const entries = cache.page_table + slot * cache.page_table_stride;
        for (int page = keys.first / length; page <= keys.last / length; ++page) {
          if (entries[page] < 0) {
            fail(thread, "a row's page table entry is negative", entries[page]);
          }
          if (cache.pages > 0 && entries[page] >= cache.pages) {
            fail(thread, "a row's page table entry is past the pool's pages", entries[page]);
          }
        }
      }
    }
  }
};

}  // namespace broach::attention
