#pragma once

// How parts of a row join, in order: an online softmax relative to the running maximum.
//
//   M' = max(M, m)   a = exp(M - M')   b = exp(m - M')   l = l a + l_part b   o = o a + o_part b

#include "common/exp.cuh"
#include "common/ops.cuh"
#include "common/warp.cuh"
#include "sparse_rows/names.cuh"

namespace broach::sparse_rows {

struct Rescale {
  float before;   ///< a
  float joining;  ///< b

  BROACH_DEVICE float join(float sum, float part) const {
    return fma_rn(sum, before, mul_rn(part, joining));
  }
};

/// Moves the running maximum to include a part's.
BROACH_DEVICE Rescale rescale_for(float& maximum, float part_maximum) {
  const float next = larger(maximum, part_maximum);
  const Rescale rescale{exp32(sub_rn(maximum, next)), kControl == Control::kMergeUnscaled
                                                          ? 1.0f
                                                          : exp32(sub_rn(part_maximum, next))};
  maximum = next;
  return rescale;
}

}  // namespace broach::sparse_rows
