#pragma once

// Which keys a row sees, and where a key lies in the cache.
//
// The including source defines, in namespace broach::chunk256, kGqaRatio, kWindow, kLayout,
// kLayoutLength, kChecked, kGeneric and kControl. A generic kernel reads ratio, window and layout
// from its parameters instead, which changes no bit of any result.

#include "attention/tensors.cuh"
#include "common/platform.cuh"
#include "window_rows/chunk256_base.cuh"
#include "window_rows/params.h"

namespace broach::chunk256 {

using Params = BroachWindowRowsDecode;

BROACH_DEVICE int window_of([[maybe_unused]] const Params& params) {
  return kGeneric ? params.window : kWindow;
}

BROACH_DEVICE int ratio_of([[maybe_unused]] const Params& params) {
  return kGeneric ? params.gqa_ratio : kGqaRatio;
}

BROACH_DEVICE Layout layout_of([[maybe_unused]] const Params& params) {
  return kGeneric ? static_cast<Layout>(params.layout) : kLayout;
}

/// The ring's or the page's length.
BROACH_DEVICE int layout_length_of([[maybe_unused]] const Params& params) {
  return kGeneric ? params.layout_length : kLayoutLength;
}

/// The keys of one row, and the slot they lie in. Positions are inclusive.
struct RowKeys {
  int first;
  int last;
  int slot;

  BROACH_DEVICE int first_chunk() const { return first / kChunkKeys; }
  BROACH_DEVICE int chunks() const { return last / kChunkKeys - first_chunk() + 1; }
};

/// Ends the launch when a row's position, slot or pages are out of range (`checked` builds).
BROACH_DEVICE void check_row(Thread thread, const Params& params, const RowKeys& keys) {
  if (keys.slot < 0 || keys.slot >= params.cache.slots) {
    fail(thread, "a row's slot is outside 0 to slot_count - 1", keys.slot);
  }
  if (keys.last < 0) fail(thread, "a row's position is negative", keys.last);
  if (layout_of(params) != Layout::kRing && keys.last >= params.cache.length) {
    fail(thread, "a row's position is past its slot's length", keys.last);
  }
  if (keys.chunks() > params.max_chunks) {
    fail(thread, "a row's position is past the launch's max_keys", keys.last);
  }
  if (layout_of(params) == Layout::kPaged) {
    const int page_length = layout_length_of(params);
    const int* const pages = params.cache.page_table + keys.slot * params.cache.page_table_stride;
    for (int page = keys.first / page_length; page <= keys.last / page_length; ++page) {
      if (pages[page] < 0) fail(thread, "a row's page table entry is negative", pages[page]);
    }
  }
}

BROACH_DEVICE RowKeys keys_of_row(Thread thread, const Params& params, int row) {
  RowKeys keys{0, params.positions[row], params.slots[row]};
  const int window = window_of(params);
  const int early = kControl == Control::kWindowEarly ? 1 : 0;
  if (window > 0 && keys.last - window + 1 - early > 0) keys.first = keys.last - window + 1 - early;
  if constexpr (kChecked) check_row(thread, params, keys);
  return keys;
}

/// Finds the rows of a run of keys in k or v.
///
/// Shapes:  `head` is the KV head's first element in slot 0 (or page 0); strides as in the params.
struct KeyRows {
  const unsigned short* head;
  const int* pages;
  long long slot_stride;
  long long position_stride;
  Layout layout;
  int length;
  int first;    ///< The run's first key ...
  int in_ring;  ///< ... and where in the ring it lies.

  /// Address of key `position`: at most `length` past the run's first key in a ring.
  BROACH_DEVICE const unsigned short* at(int position) const {
    if (layout == Layout::kPaged) {
      const int entry = position / length + (kControl == Control::kPageOffByOne ? 1 : 0);
      return head + pages[entry] * slot_stride + position % length * position_stride;
    }
    int index = position;
    if (layout == Layout::kRing) {
      index = in_ring + (position - first);
      if (index >= length) index -= length;
    }
    return head + index * position_stride;
  }
};

BROACH_DEVICE KeyRows key_rows(const Params& params, const RowKeys& keys, int first,
                               const unsigned short* head, long long slot_stride,
                               long long position_stride) {
  KeyRows rows{
      head,  nullptr, slot_stride, position_stride, layout_of(params), layout_length_of(params),
      first, 0};
  if (rows.layout == Layout::kPaged) {
    rows.pages = params.cache.page_table + keys.slot * params.cache.page_table_stride;
  } else {
    rows.head += keys.slot * slot_stride;
  }
  if (rows.layout == Layout::kRing) rows.in_ring = first % rows.length;
  return rows;
}

BROACH_DEVICE KeyRows k_rows(const Params& params, const RowKeys& keys, int first, int kv_head) {
  return key_rows(params, keys, first,
                  elements(params.cache.k) + kv_head * params.cache.k_head_stride,
                  params.cache.k_slot_stride, params.cache.k_position_stride);
}

BROACH_DEVICE KeyRows v_rows(const Params& params, const RowKeys& keys, int first, int kv_head) {
  return key_rows(params, keys, first,
                  elements(params.cache.v) + kv_head * params.cache.v_head_stride,
                  params.cache.v_slot_stride, params.cache.v_position_stride);
}

}  // namespace broach::chunk256
