#pragma once

// The tiles of 64 keys at absolute positions that any row of a block selected a key of, and which
// keys of each: found a span of kSpanTiles tile positions at a time, from the rows' sorted ids.

#include "common/platform.cuh"
#include "common/warp.cuh"
#include "sparse_rows/layout.h"
#include "sparse_rows/selection.cuh"

namespace broach::sparse_rows {

constexpr int kNoTile = 0x7fffffff;
constexpr int kRowThreads = kMmaThreads / kTileRows;

struct SpanShared {
  unsigned masks[kTileRows][kSpanTiles][2];  // key 32 w + b of a tile is bit b of word w
  int tiles[kSpanTiles];                     // positions in the span that are not empty
  unsigned cursors[4];                       // ids of a row that earlier spans took
  unsigned taken[4];                         // and this one
  unsigned tails[4];                         // whether a row's tail was taken
  int next[4];                               // the first tile that is left, a row
  int count;                                 // of `tiles`
  int unused[3];
};

BROACH_DEVICE int bits_set(unsigned x) {
  x = x - ((x >> 1) & 0x55555555u);
  x = (x & 0x33333333u) + ((x >> 2) & 0x33333333u);
  return static_cast<int>((((x + (x >> 4)) & 0x0f0f0f0fu) * 0x01010101u) >> 24);
}

/// Walks the tiles of the rows `active` (a bit a row) of a block whose first row is `first_row`.
struct Span {
  int first_row;
  int kv_head;
  unsigned active;
  int first_tile = 0;

  BROACH_DEVICE bool is_active(int r) const { return (active >> r & 1u) != 0; }

  BROACH_DEVICE void start(Thread thread, SpanShared& shared) const {
    sync_block(thread);
    if (thread.index() < kTileRows) {
      shared.cursors[thread.index()] = 0;
      shared.tails[thread.index()] = 0;
    }
    sync_block(thread);
  }

  /// Finds the next span; false when nothing is left. Every thread takes part.
  BROACH_DEVICE bool find(Thread thread, const Params& p, SpanShared& shared) {
    const int index = static_cast<int>(thread.index());
    if (index < kTileRows) {
      shared.next[index] = is_active(index) ? next_tile(p, index, shared) : kNoTile;
      shared.taken[index] = 0;
    }
    for (int i = index; i < kTileRows * kSpanTiles; i += kMmaThreads) {
      shared.masks[i / kSpanTiles][i % kSpanTiles][0] = 0;
      shared.masks[i / kSpanTiles][i % kSpanTiles][1] = 0;
    }
    sync_block(thread);
    first_tile = shared.next[0];
    BROACH_UNROLL
    for (int r = 1; r < kTileRows; ++r) first_tile = min_of(first_tile, shared.next[r]);
    if (first_tile == kNoTile) return false;
    const int row = index / kRowThreads;
    if (is_active(row)) take(p, row, index % kRowThreads, shared);
    sync_block(thread);
    if (index < kTileRows) shared.cursors[index] += shared.taken[index];
    if (thread.warp() == 0) list(thread, shared);
    sync_block(thread);
    return true;
  }

 private:
  BROACH_DEVICE int next_tile(const Params& p, int r, const SpanShared& shared) const {
    const Selection s(p, first_row + r, kv_head);
    const auto cursor = static_cast<int>(shared.cursors[r]);
    if (cursor < s.count) return s.first_of_block(s.blocks[cursor]) / kMmaTileKeys;
    return s.tail_first() <= s.last() && shared.tails[r] == 0 ? s.tail_first() / kMmaTileKeys
                                                              : kNoTile;
  }

  /// Adds the keys first .. first + count - 1, which lie in one tile.
  BROACH_DEVICE void add(int r, int first, int count, SpanShared& shared) const {
    const int at = first / kMmaTileKeys - first_tile;
    if (at < 0 || at >= kSpanTiles) return;
    // Ids are distinct, so that sums of their bits are unions.
    const unsigned long long bits = ((1ull << count) - 1) << (first % kMmaTileKeys);
    const auto low = static_cast<unsigned>(bits);
    const auto high = static_cast<unsigned>(bits >> 32);
    if (low != 0) atomic_add(&shared.masks[r][at][0], low);
    if (high != 0) atomic_add(&shared.masks[r][at][1], high);
  }

  /// One thread's share of a row's ids and, where the span reaches so far, its tail.
  BROACH_DEVICE void take(const Params& p, int r, int lane, SpanShared& shared) const {
    const Selection s(p, first_row + r, kv_head);
    const int end = first_tile + kSpanTiles;
    unsigned count = 0;
    BROACH_ROLLED
    for (int i = static_cast<int>(shared.cursors[r]) + lane; i < s.count; i += kRowThreads) {
      const int first = s.first_of_block(s.blocks[i]);
      if (first / kMmaTileKeys >= end) break;
      // A planted fault alone reaches past the row.
      if (first + s.compress_ratio - 1 <= s.last()) add(r, first, s.compress_ratio, shared);
      ++count;
      if (s.let_in() != 0 && i == s.count - 1) {
        add(r, (s.blocks[i] + 1) * s.compress_ratio, s.compress_ratio, shared);
      }
    }
    if (count != 0) atomic_add(&shared.taken[r], count);
    if (lane == 0 && shared.tails[r] == 0 && s.tail_first() / kMmaTileKeys < end) {
      shared.tails[r] = 1;
      if (s.tail_first() <= s.last()) {
        add(r, s.tail_first(), s.last() + 1 - s.tail_first(), shared);
      }
    }
  }

  /// Lists the tiles that hold a key of any row. The first warp's work.
  BROACH_DEVICE void list(Thread thread, SpanShared& shared) const {
    const int lane = static_cast<int>(thread.lane());
    int count = 0;
    BROACH_UNROLL
    for (int base = 0; base < kSpanTiles; base += 32) {
      unsigned any_key = 0;
      BROACH_UNROLL
      for (int r = 0; r < kTileRows; ++r) {
        any_key |= shared.masks[r][base + lane][0] | shared.masks[r][base + lane][1];
      }
      const unsigned votes = ballot(thread, any_key != 0);
      const unsigned before = votes & ((1u << lane) - 1u);
      if (any_key != 0) shared.tiles[count + bits_set(before)] = base + lane;
      count += bits_set(votes);
    }
    if (lane == 0) shared.count = count;
  }
};

}  // namespace broach::sparse_rows
