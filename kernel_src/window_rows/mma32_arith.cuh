#pragma once

// The arithmetic of mma32, which docs/numerics_mma32.md words: with the MMA steps and
// softmax.cuh, all that fixes its bits.
//
//   dot_j = (slice_0 + slice_1) + ..., each a chain of k16 MMA steps over 128 dims, from 0
//   s_j   = scale * dot_j, then c tanh(s / c)
//   m'    = max(m, max_j s_j)   a = exp(m - m')   p_j = exp(s_j - m')
//   l     = l a + sum of the tile's p_j, in sum_order
//   pv    = chain of k16 MMA steps over the tile's keys, from 0; with p32 each step hi, then lo
//   o     = o a + pv
//   sink: m' = max(m, sink)   a = exp(m - m')   l = l a + exp(sink - m')   o = o a
//   out = round(o / l)

#include "window_rows/softmax.cuh"

namespace broach::window_rows {

/// The dims of one chain of steps; the last slice may be shorter.
constexpr int kSliceDims = 128;

/// What a tile's weights are relative to: the running maximum that includes the tile's.
BROACH_DEVICE float weight_base(float maximum, float tile_maximum) {
  return larger(maximum, tile_maximum);
}

/// What a tile's join does to the running sums: l = l keep + its sum of P, o = o keep + its pv.
struct Fold {
  float keep;

  BROACH_DEVICE float join(float sum, float part) const { return fma_rn(sum, keep, part); }
};

/// Moves the running maximum to include a tile's.
BROACH_DEVICE Fold fold_factors(float& maximum, float tile_maximum) {
  const float next = larger(maximum, tile_maximum);
  const Fold fold{kControl == Control::kFoldUnscaled ? 1.0f : exp32(sub_rn(maximum, next))};
  maximum = next;
  return fold;
}

}  // namespace broach::window_rows
