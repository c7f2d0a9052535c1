#pragma once

// The keys that a row selected: the keys of its blocks in position order, then its tail, which is
// what lies from the end of the last whole block up to the row's own position.
//
// The including source defines, in namespace broach::sparse_rows after names.cuh: kHeadDim, kRatio,
// kCompressRatio, kPartCount, kLayout, kLayoutLength, kHalf, kQueryType, kChecked, kGeneric,
// kControl. A generic kernel reads ratios, part count and layout from its parameters instead, which
// changes no bit of any result.

#include "attention/cache_rows.cuh"
#include "common/platform.cuh"
#include "sparse_rows/names.cuh"
#include "sparse_rows/params.h"

namespace broach::sparse_rows {

using Params = BroachSparseRows;

BROACH_DEVICE int ratio_of([[maybe_unused]] const Params& p) {
  return kGeneric ? p.gqa_ratio : kRatio;
}
BROACH_DEVICE int compress_ratio_of([[maybe_unused]] const Params& p) {
  return kGeneric ? p.compress_ratio : kCompressRatio;
}
BROACH_DEVICE int part_count_of([[maybe_unused]] const Params& p) {
  return kGeneric ? p.part_count : kPartCount;
}
BROACH_DEVICE CacheShape cache_shape_of([[maybe_unused]] const Params& p) {
  if constexpr (kGeneric) return {static_cast<CacheLayout>(p.layout), p.layout_length};
  return {kLayout, kLayoutLength};
}

/// One row's selection for one KV head.
///
/// Owns:    nothing; the block ids outlive it.
struct Selection {
  const int* blocks;  ///< [count] ids
  int count;
  int compress_ratio;
  int position;
  int slot;

  BROACH_DEVICE Selection(const Params& p, int row, int kv_head)
      : blocks(p.blocks + row * p.block_row_stride + kv_head * p.block_head_stride),
        count(p.block_counts[row * p.count_row_stride + kv_head * p.count_head_stride]),
        compress_ratio(compress_ratio_of(p)),
        position(p.positions[row]),
        slot(p.slots[row]) {}

  BROACH_DEVICE int first_of_block(int id) const {
    return id * (compress_ratio + (kControl == Control::kRatioOffByOne ? 1 : 0));
  }
  BROACH_DEVICE int last() const {
    return position - (kControl == Control::kCausalOffByOne ? 1 : 0);
  }
  BROACH_DEVICE int tail_first() const { return (position + 1) / compress_ratio * compress_ratio; }
  /// Keys of the block behind the last one, which a planted fault lets in.
  BROACH_DEVICE int let_in() const {
    if (kControl != Control::kUnmaskedBlock || count == 0) return 0;
    return (blocks[count - 1] + 2) * compress_ratio <= tail_first() ? compress_ratio : 0;
  }
  BROACH_DEVICE int listed() const { return count * compress_ratio + let_in(); }
  BROACH_DEVICE int length() const { return listed() + max_of(last() + 1 - tail_first(), 0); }

  /// Position of the i-th key of the list.
  BROACH_DEVICE int key(int i) const {
    if (i >= listed()) return tail_first() + i - listed();
    // Compilers divide unsigned numbers by a constant faster.
    const auto in_list = static_cast<unsigned>(i);
    const auto ratio = static_cast<unsigned>(compress_ratio);
    const int nth = static_cast<int>(in_list / ratio);
    const int id =
        kControl == Control::kUnmaskedBlock && nth == count ? blocks[nth - 1] + 1 : blocks[nth];
    const int key = first_of_block(id) + static_cast<int>(in_list % ratio);
    return kControl == Control::kRatioOffByOne ? min_of(key, position) : key;
  }
};

/// Ends the launch when a row's position, slot, pages or block ids are out of range. The threads of
/// a block share the ids.
BROACH_DEVICE void check_selection(Thread thread, const Params& p, const Selection& s) {
  const CacheShape shape = cache_shape_of(p);
  if (s.slot < 0 || s.slot >= p.cache.slots) {
    fail(thread, "a row's slot is outside 0 to slots - 1", s.slot);
  }
  if (s.position < 0) fail(thread, "a row's position is negative", s.position);
  if (shape.layout != CacheLayout::kRing && s.position >= p.cache.length) {
    fail(thread, "a row's position is past its slot's length", s.position);
  }
  if (s.count < 0) fail(thread, "a row's block count is negative", s.count);
  for (int i = static_cast<int>(thread.index()); i < s.count;
       i += static_cast<int>(thread.block_threads())) {
    const int id = s.blocks[i];
    if (id < 0) fail(thread, "a row's block id is negative", id);
    if (i > 0 && id == s.blocks[i - 1]) fail(thread, "a row's block id is repeated", id);
    if (i > 0 && id < s.blocks[i - 1]) fail(thread, "a row's block ids are out of order", id);
    if (id >= (s.position + 1) / s.compress_ratio) {
      fail(thread, "a row's block is past its position", id);
    }
    if (shape.layout == CacheLayout::kPaged) {
      const int* const pages = pages_of(p.cache, s.slot);
      for (int key = s.first_of_block(id); key < s.first_of_block(id + 1); ++key) {
        const int page = pages[key / shape.length];
        if (page < 0 || page >= p.cache.pages) {
          fail(thread, "a row's page is outside 0 to pages - 1", page);
        }
      }
    }
  }
}

/// Where keys' rows lie in one KV head of the cache, in elements from its first.
struct KvHead {
  const unsigned short* k;
  const unsigned short* v;
  const int* pages;
  CacheShape shape;
  int slot;

  BROACH_DEVICE KvHead(const Params& p, int slot_of_row, int kv_head)
      : k(elements(static_cast<const void*>(p.cache.k)) + kv_head * p.cache.k_head_stride),
        v(elements(static_cast<const void*>(p.cache.v)) + kv_head * p.cache.v_head_stride),
        pages(nullptr),
        shape(cache_shape_of(p)),
        slot(slot_of_row) {
    if (shape.layout == CacheLayout::kPaged) pages = pages_of(p.cache, slot);
  }

  BROACH_DEVICE CacheCell cell(int key) const { return cell_of(shape, pages, slot, key); }
};

BROACH_DEVICE long long k_offset(const Params& p, const CacheCell& cell) {
  return cell.offset(p.cache.k_slot_stride, p.cache.k_position_stride);
}
BROACH_DEVICE long long v_offset(const Params& p, const CacheCell& cell) {
  return cell.offset(p.cache.v_slot_stride, p.cache.v_position_stride);
}

/// Where a row's query head lies in q or out, in elements.
BROACH_DEVICE long long q_offset(const Params& p, int row, int head) {
  return row * p.attention.q_row_stride + head * p.attention.q_head_stride;
}
BROACH_DEVICE long long out_offset(const Params& p, int row, int head) {
  return row * p.attention.out_row_stride + head * p.attention.out_head_stride;
}

}  // namespace broach::sparse_rows
