#pragma once

// The arithmetic of tile64, which docs/numerics_tile64.md words: with the MMA steps and
// softmax.cuh, all that fixes its bits.
//
//   s_j   = scale * (chain of k16 MMA steps over the dims, from 0), then c tanh(s / c)
//   m_t   = max_j s_j          p_j = exp(s_j - m_t)          l_t = sum of p_j, in sum_order
//   pv_t  = chain of k16 MMA steps over the tile's keys, from 0; with p32 each step hi, then lo
//   M' = max(M, m_t)   a = exp(M - M')   b = exp(m_t - M')   l = l a + l_t b   o = o a + pv_t b
//   sink: M' = max(M, sink)   a = exp(M - M')   l = l a + exp(sink - M')   o = o a
//   out = round(o / l)

#include "window_rows/softmax.cuh"

namespace broach::window_rows {

/// The dims of one chain of steps: all of them.
constexpr int kSliceDims = kHeadDim;

/// What a tile's weights are relative to: its own maximum.
BROACH_DEVICE float weight_base(float /*maximum*/, float tile_maximum) { return tile_maximum; }

/// What a tile's join does to the running sums: l = l keep + l_t take, o = o keep + pv_t take.
struct Fold {
  float keep;
  float take;

  BROACH_DEVICE float join(float sum, float part) const {
    return fma_rn(sum, keep, mul_rn(part, take));
  }
};

/// Moves the running maximum to include a tile's.
BROACH_DEVICE Fold fold_factors(float& maximum, float tile_maximum) {
  const float next = larger(maximum, tile_maximum);
  const Fold fold{exp32(sub_rn(maximum, next)),
                  kControl == Control::kFoldUnscaled ? 1.0f : exp32(sub_rn(tile_maximum, next))};
  maximum = next;
  return fold;
}

}  // namespace broach::window_rows
