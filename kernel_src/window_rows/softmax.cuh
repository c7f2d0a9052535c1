#pragma once

// The arithmetics made of MMA steps: with the steps and attention/softmax.cuh, all that fixes their
// bits. docs/families/window_rows_tile64.md and docs/families/window_rows_mma32.md have the words.
//
// tile64
//   s_j   = scale * (chain of k16 MMA steps over the dims, from 0), then c tanh(s / c)
//   m_t   = max_j s_j          p_j = exp(s_j - m_t)          l_t = sum of p_j
//   pv_t  = chain of k16 MMA steps over the tile's keys, from 0; with p32 each step hi, then lo
//   M' = max(M, m_t)   a = exp(M - M')   b = exp(m_t - M')   l = l a + l_t b   o = o a + pv_t b
//
// tile64_ex2: tile64 with the special-function unit's exponential (attention/softmax.cuh)
//
// mma32
//   dot_j = (slice_0 + slice_1) + ..., each a chain of k16 MMA steps over 128 dims, from 0
//   s_j   = scale * dot_j, then c tanh(s / c)
//   m'    = max(m, max_j s_j)   a = exp(m - m')   p_j = exp(s_j - m')
//   l     = l a + sum of the tile's p_j          o = o a + pv, pv as tile64's pv_t
//
// both
//   sink: M' = max(M, sink)   a = exp(M - M')   l = l a + exp(sink - M')   o = o a
//   out = round(o / l)

#include "attention/softmax.cuh"
#include "window_rows/keys.cuh"

namespace broach::window_rows {

constexpr attention::SoftmaxConfig kSoftmax = kConfig.softmax();
constexpr bool kAddsSink = kSoftmax.adds_sink();

/// P as it enters P x V: one operand, or two halves.
constexpr int kHalves = kConfig.p32 ? 2 : 1;

/// Dims of one chain of steps. mma32's last slice may be shorter.
constexpr int kSliceDims = kConfig.arith == Arith::kMma32 ? 128 : kConfig.head_dim;

/// An arithmetic: what P of a tile is relative to, and how the tile joins the running sums.
template <Arith kArith>
struct Softmax;

template <>
struct Softmax<Arith::kTile64> {
  using Rescale = attention::TileRescale;

  BROACH_DEVICE static float base(float /*maximum*/, float tile_maximum) { return tile_maximum; }
  BROACH_DEVICE static Rescale rescale(float& maximum, float tile_maximum) {
    return attention::tile_rescale<kSoftmax>(maximum, tile_maximum);
  }
};

template <>
struct Softmax<Arith::kTile64Ex2> : Softmax<Arith::kTile64> {};

template <>
struct Softmax<Arith::kMma32> {
  using Rescale = attention::OnlineRescale;

  BROACH_DEVICE static float base(float maximum, float tile_maximum) {
    return larger(maximum, tile_maximum);
  }
  BROACH_DEVICE static Rescale rescale(float& maximum, float tile_maximum) {
    return attention::online_rescale<kSoftmax>(maximum, tile_maximum);
  }
};

using TileSoftmax = Softmax<kConfig.arith>;
using Rescale = TileSoftmax::Rescale;

}  // namespace broach::window_rows
