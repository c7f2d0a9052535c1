#pragma once

// The workspace between chunk256's two kernels (geometry.h), and the row's chunks.

#include "common/platform.cuh"
#include "window_rows/keys.cuh"

namespace broach::window_rows {

// Constants at namespace scope are made of these: HIP refuses a __device__ function there, and
// takes a constexpr one without an attribute for both sides.
constexpr int min_of(int a, int b) { return a < b ? a : b; }
constexpr int max_of(int a, int b) { return a > b ? a : b; }
constexpr int at_least_pow2(int n) { return n <= 1 ? 1 : 2 * at_least_pow2((n + 1) / 2); }

BROACH_DEVICE KeyRange chunk256_keys(Thread thread, const Params& params, int row) {
  const KeyRange keys = keys_of_row(thread, params, row);
  check_partials(thread, params, keys.tiles<kChunkKeys>(), keys.last);
  return keys;
}

struct Chunk256Partials {
  float* values;
  float* maxima;
  float* sums;

  BROACH_DEVICE explicit Chunk256Partials(const Params& params) {
    const Chunk256Workspace layout = chunk256_workspace(
        params.attention.rows, static_cast<long long>(params.cache.kv_heads) * ratio_of(params),
        params.max_partials, kConfig.head_dim);
    values = static_cast<float*>(params.workspace);
    maxima = values + layout.maxima;
    sums = values + layout.sums;
  }
};

/// Partial 0 of a (row, query head).
BROACH_DEVICE long long first_partial(const Params& params, int row, int head) {
  const long long heads = static_cast<long long>(params.cache.kv_heads) * ratio_of(params);
  return (row * heads + head) * params.max_partials;
}

}  // namespace broach::window_rows
