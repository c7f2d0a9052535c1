#pragma once

// The workspace between the part and the merge kernel. Partial i belongs to (row, query head, the
// row's n-th chunk): i = (row * heads + head) * max_chunks + n.
//
//   o [partials][D]   sum of exp(s_j - m) v_j over the chunk's keys
//   m [partials]      the chunk's largest score
//   l [partials]      sum of exp(s_j - m)
//
// That is rows * heads * max_chunks * (D + 2) floats, 16-byte aligned.

#include "common/platform.cuh"
#include "window_rows/chunk256_keys.cuh"

namespace broach::chunk256 {

struct Partials {
  float* o;
  float* m;
  float* l;

  BROACH_DEVICE explicit Partials(const Params& params) {
    const long long partials = static_cast<long long>(params.attention.rows) *
                               params.cache.kv_heads * ratio_of(params) * params.max_chunks;
    o = static_cast<float*>(params.workspace);
    m = o + partials * kHeadDim;
    l = m + partials;
  }
};

/// Partial 0 of a (row, query head).
BROACH_DEVICE long long first_partial(const Params& params, int row, int head) {
  const long long heads = static_cast<long long>(params.cache.kv_heads) * ratio_of(params);
  return (row * heads + head) * params.max_chunks;
}

}  // namespace broach::chunk256
