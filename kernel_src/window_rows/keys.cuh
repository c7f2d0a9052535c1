#pragma once

// Which keys a row sees, and where they lie, for window_rows kernels of `kConfig`.

#include "attention/float64_fallback.cuh"
#include "attention/kv_address.cuh"
#include "common/platform.cuh"
#include "window_rows/params.h"

namespace broach::window_rows {

using attention::KeyRange;
using Params = BroachWindowRowsDecode;
using Kv = attention::KvAddress<kConfig.kv()>;

BROACH_DEVICE int window_of([[maybe_unused]] const Params& p) {
  return kConfig.generic ? p.window : kConfig.window;
}

BROACH_DEVICE int ratio_of([[maybe_unused]] const Params& p) {
  return kConfig.generic ? p.gqa_ratio : kConfig.ratio;
}

BROACH_DEVICE attention::RunTimeLayout layout_of(const Params& p) {
  return {p.layout, p.layout_length};
}

/// First key that a row at `position` sees.
BROACH_DEVICE int first_key(const Params& p, int position) {
  const int window = window_of(p);
  if (window == 0) return 0;
  const int early = kConfig.has(Control::kWindowEarly) ? 1 : 0;
  const int first = position - window + 1 - early;
  return first > 0 ? first : 0;
}

/// The keys of a decode's row.
BROACH_DEVICE KeyRange keys_of_row(Thread thread, const Params& p, int row) {
  const int position = p.positions[row];
  const KeyRange keys{first_key(p, position), position};
  Kv::check(thread, p.cache, layout_of(p), p.slots[row], keys);
  return keys;
}

/// Ends the launch when a row has more partials than its workspace (`checked` builds).
BROACH_DEVICE void check_partials([[maybe_unused]] Thread thread, [[maybe_unused]] const Params& p,
                                  [[maybe_unused]] int partials, [[maybe_unused]] int position) {
  if constexpr (kConfig.checked) {
    if (partials > p.max_partials) {
      fail(thread, "a row's position is past the launch's max_keys", position);
    }
  }
}

/// The KV head whose keys query heads of `kv_head` attend to.
BROACH_DEVICE int cache_head(const Params& p, int kv_head) {
  const int ratio = ratio_of(p);
  return kConfig.has(Control::kRatioOffByOne) ? kv_head * ratio / (ratio + 1) : kv_head;
}

BROACH_DEVICE Kv kv_of(const Params& p, int slot, int kv_head) {
  return Kv(p.cache, layout_of(p), slot, cache_head(p, kv_head));
}

/// Computes a (row, query head) again in float64: attention/float64_fallback.cuh.
template <int kThreads>
BROACH_DEVICE void rerun_head(Thread thread, const Params& p, int row, int head, int slot,
                              const KeyRange& keys, attention::Float64Shared& shared) {
  const Kv kv(p.cache, layout_of(p), slot, head / ratio_of(p));
  attention::recompute_in_float64<kConfig.softmax(), kConfig.head_dim, kThreads>(
      thread, p.attention, kv, keys, row, head, shared);
}

/// Re-runs the heads first_head .. first_head + heads - 1 of a KV head whose flag is set.
///
/// Shapes:  redo [heads] in shared memory, written before a block barrier.
template <int kThreads>
BROACH_DEVICE void rerun_heads(Thread thread, const Params& p, int row, int kv_head, int first_head,
                               int heads, int slot, const KeyRange& keys, const unsigned* redo,
                               attention::Float64Shared& shared) {
  if constexpr (kConfig.has(Control::kRerunDropped)) return;
  bool any_head = false;
  BROACH_ROLLED
  for (int i = 0; i < heads; ++i) any_head = any_head || redo[i] != 0;
  if (!any_head) return;
  BROACH_ROLLED
  for (int i = 0; i < heads; ++i) {
    if (redo[i] == 0 && !kConfig.has(Control::kWholeBlockRerun)) continue;
    rerun_head<kThreads>(thread, p, row, kv_head * ratio_of(p) + first_head + i, slot, keys,
                         shared);
  }
}

/// A finished output value in 16 bits.
BROACH_DEVICE unsigned short rounded_output(float value) {
  unsigned short bits = narrow<kConfig.dtype>(value);
  if constexpr (kConfig.has(Control::kOutputTowardZero)) {
    const float away = float_of(bits_of(widen<kConfig.dtype>(bits)) & 0x7fffffffu);
    if (away > float_of(bits_of(value) & 0x7fffffffu)) bits = static_cast<unsigned short>(bits - 1);
  }
  return bits;
}

}  // namespace broach::window_rows
