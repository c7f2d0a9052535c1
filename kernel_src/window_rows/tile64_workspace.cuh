#pragma once

// The workspace of a tile64 decode that spreads a row's tiles over CTAs (geometry.h), and how the
// last of them is found.
//
// An arrival counter holds the launch's number above a 16-bit count, so it needs no clearing: what
// an earlier launch, or nobody, left there carries another number and counts as none. The last CTA
// leaves a count of none, so that a captured launch may be replayed.

#include "common/platform.cuh"
#include "window_rows/keys.cuh"

namespace broach::window_rows {

/// The partials of one row and KV head.
struct Tile64Partials {
  float* maxima;
  float* sums;
  float* all_values;
  int ratio;

  BROACH_DEVICE Tile64Partials(const Params& p, int row, int kv_head) : ratio(ratio_of(p)) {
    const long long pairs = static_cast<long long>(p.attention.rows) * p.cache.kv_heads;
    const long long pair = static_cast<long long>(row) * p.cache.kv_heads + kv_head;
    const long long heads = static_cast<long long>(p.max_partials) * ratio;
    const Tile64Workspace layout = tile64_workspace(pairs, p.max_partials, ratio, kConfig.head_dim);
    float* const floats = static_cast<float*>(p.workspace);
    maxima = floats + layout.maxima + pair * heads;
    sums = floats + layout.sums + pair * heads;
    all_values = floats + layout.values + pair * heads * kConfig.head_dim;
  }

  BROACH_DEVICE float& maximum(int tile, int head) const { return maxima[tile * ratio + head]; }
  BROACH_DEVICE float& sum(int tile, int head) const { return sums[tile * ratio + head]; }
  /// [D]
  BROACH_DEVICE float* values(int tile, int head) const {
    return all_values + static_cast<long long>(tile * ratio + head) * kConfig.head_dim;
  }
};

/// Counts one arrival; returns how many there are with it.
///
/// One addition where the counter carries the launch's number already. Else it is added to what is
/// no count; whoever then exchanges it first begins to count, and the others add once more.
BROACH_DEVICE unsigned count_arrival(unsigned long long* counter, unsigned long long launch) {
  const unsigned long long held = atomic_add(counter, 1);
  if (held >> 16 == launch) return static_cast<unsigned>(held & 0xffffu) + 1;
  unsigned long long seen = held + 1;
  for (;;) {
    const unsigned long long was = atomic_exchange_if(counter, seen, launch << 16 | 1);
    if (was == seen) return 1;
    if (was >> 16 == launch) return static_cast<unsigned>(atomic_add(counter, 1) & 0xffffu) + 1;
    seen = was;
  }
}

/// Says to one CTA of a row and KV head, and to no other, that all `ctas` have left their partials,
/// which it may then read.
///
/// Shapes:  `flag` is one word of shared memory.
BROACH_DEVICE bool is_last_cta(Thread thread, const Params& p, int pair, unsigned long long launch,
                               int ctas, unsigned* flag) {
  fence_grid();
  sync_block(thread);
  if (thread.index() == 0) {
    auto* const counter = static_cast<unsigned long long*>(p.workspace) + pair;
    const bool last = count_arrival(counter, launch) == static_cast<unsigned>(ctas);
    if (last) *counter = launch << 16;
    *flag = last ? 1u : 0u;
  }
  sync_block(thread);
  fence_grid();
  return *flag != 0;
}

}  // namespace broach::window_rows
