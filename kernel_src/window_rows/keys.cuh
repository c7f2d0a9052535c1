#pragma once

// Which keys a row sees, and where a key lies in the cache, for window_rows kernels.
//
// The including source defines, in namespace broach::window_rows, the constants of its shape:
// kWindow, kLayout, kLayoutLength, kRatio, kGeneric, kChecked, kControl, and the kTileKeys of its
// arithmetic. A generic kernel reads window, ratio and layout from its parameters instead, which
// changes no bit of any result.

#include "attention/tensors.cuh"
#include "common/platform.cuh"
#include "window_rows/layout.h"
#include "window_rows/names.cuh"
#include "window_rows/params.h"

namespace broach::window_rows {

/// Inclusive key positions.
struct KeyRange {
  int first;
  int last;

  /// One comparison, since a prefill asks for every score.
  BROACH_DEVICE bool holds(int key) const {
    const auto from = static_cast<unsigned>(first);
    return static_cast<unsigned>(key) - from < static_cast<unsigned>(last) + 1u - from;
  }
  BROACH_DEVICE int first_tile() const { return first / kTileKeys; }
  BROACH_DEVICE int last_tile() const { return last / kTileKeys; }
};

BROACH_DEVICE int window_of([[maybe_unused]] const BroachWindowRowsDecode& p) {
  if constexpr (kGeneric) {
    return p.window;
  } else {
    return kWindow;
  }
}

BROACH_DEVICE int ratio_of([[maybe_unused]] const BroachWindowRowsDecode& p) {
  if constexpr (kGeneric) {
    return p.gqa_ratio;
  } else {
    return kRatio;
  }
}

/// First key that a row at `position` sees.
BROACH_DEVICE int first_key(const BroachWindowRowsDecode& p, int position) {
  const int window = window_of(p);
  if (window == 0) return 0;
  const int early = kControl == Control::kWindowEarly ? 1 : 0;
  const int first = position - window + 1 - early;
  return first > 0 ? first : 0;
}

/// Where the rows of one cache tensor's keys lie, in elements from its KV head's first.
struct RowStrides {
  long long slot;
  long long position;
  long long start;  ///< Of the sequence's slot.
};

/// Offsets of a key's row in k and v, in elements from the KV head's first.
///
/// Owns:    nothing; `p` outlives it.
struct KeyRows {
  const BroachWindowRowsDecode& p;
  RowStrides of_k;
  RowStrides of_v;
  const int* pages;

  BROACH_DEVICE KeyRows(const BroachWindowRowsDecode& params, int slot)
      : p(params),
        of_k{params.cache.k_slot_stride, params.cache.k_position_stride,
             slot * params.cache.k_slot_stride},
        of_v{params.cache.v_slot_stride, params.cache.v_position_stride,
             slot * params.cache.v_slot_stride},
        pages(params.cache.page_table + slot * params.cache.page_table_stride) {}

  BROACH_DEVICE long long k(int key) const { return offset(key, of_k); }
  BROACH_DEVICE long long v(int key) const { return offset(key, of_v); }

  BROACH_DEVICE long long offset(int key, const RowStrides& strides) const {
    const Layout layout = kGeneric ? static_cast<Layout>(p.layout) : kLayout;
    // A linear layout has no length to divide by.
    constexpr int kDivisor = kLayoutLength > 0 ? kLayoutLength : 1;
    const auto length = static_cast<unsigned>(kGeneric ? p.layout_length : kDivisor);
    const auto position = static_cast<unsigned>(key);
    if (layout == Layout::kPaged) {
      const unsigned page = position / length + (kControl == Control::kPageOffByOne ? 1u : 0u);
      return pages[page] * strides.slot + position % length * strides.position;
    }
    if (layout == Layout::kRing) return strides.start + position % length * strides.position;
    return strides.start + key * strides.position;
  }

  /// Whether `count` keys' rows lie a position's stride apart, each behind the one before.
  BROACH_DEVICE bool follow_each_other(int first, int count) const {
    const Layout layout = kGeneric ? static_cast<Layout>(p.layout) : kLayout;
    constexpr int kDivisor = kLayoutLength > 0 ? kLayoutLength : 1;
    const auto length = static_cast<unsigned>(kGeneric ? p.layout_length : kDivisor);
    return layout == Layout::kLinear ||
           static_cast<unsigned>(first) % length + static_cast<unsigned>(count) <= length;
  }
};

/// Ends the launch when a row's position, slot or pages are out of range (`checked` builds).
BROACH_DEVICE void check_row(Thread thread, const BroachWindowRowsDecode& p, int slot, int first,
                             int last) {
  if constexpr (kChecked) {
    const Layout layout = kGeneric ? static_cast<Layout>(p.layout) : kLayout;
    if (slot < 0 || slot >= p.cache.slots) fail(thread, "slot is out of range", slot);
    if (last < 0) fail(thread, "position is negative", last);
    if (layout != Layout::kRing && last >= p.cache.length) {
      fail(thread, "position is past the cache's length", last);
    }
    if (layout == Layout::kPaged) {
      constexpr int kDivisor = kLayoutLength > 0 ? kLayoutLength : 1;
      const int page_length = kGeneric ? p.layout_length : kDivisor;
      const int* const pages = p.cache.page_table + slot * p.cache.page_table_stride;
      for (int page = first / page_length; page <= last / page_length; ++page) {
        if (pages[page] < 0) fail(thread, "page table entry is negative", pages[page]);
      }
    }
  }
}

}  // namespace broach::window_rows
