#pragma once

// Where a position's row lies in a KV cache, for kernels that take broach_kv_cache as it stands.

#include "attention/tensors.cuh"
#include "common/platform.cuh"

namespace broach {

enum class CacheLayout : int { kLinear = 0, kRing = 1, kPaged = 2 };

/// How the positions of a slot lie: a kernel's constants, or a generic kernel's parameters.
struct CacheShape {
  CacheLayout layout;
  int length;  ///< The ring's or the page's; 0 for linear.
};

/// The cell that holds a position, counted in position strides from its slot's or page's first, and
/// the slot or page.
struct CacheCell {
  int slot_or_page;
  int index;

  /// Offset in elements from a tensor's first, of KV head 0.
  BROACH_DEVICE long long offset(long long slot_stride, long long position_stride) const {
    return slot_or_page * slot_stride + index * position_stride;
  }
};

/// Shapes:  `pages`: the slot's entries of the page table; read in paged layouts only.
BROACH_DEVICE CacheCell cell_of(const CacheShape& shape, const int* pages, int slot, int position) {
  if (shape.layout == CacheLayout::kLinear) return {slot, position};
  const auto length = static_cast<unsigned>(shape.length);
  const int index = static_cast<int>(static_cast<unsigned>(position) % length);
  if (shape.layout == CacheLayout::kRing) return {slot, index};
  return {pages[static_cast<unsigned>(position) / length], index};
}

/// A slot's entries of the page table.
BROACH_DEVICE const int* pages_of(const broach_kv_cache& cache, int slot) {
  return cache.page_table + slot * cache.page_table_stride;
}

}  // namespace broach
