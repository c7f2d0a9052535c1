#pragma once

// qk_rows: RoPE, head norms and cache writes (docs/families/qk_rows.md).
//
//   rotation of a pair (x, y), angle = fl(position inv_j):
//     x' = fma(x, cos, -fl(y sin))     y' = fma(x, sin, fl(y cos))
//   l2:  x (1 / sqrt(sum x^2 + eps))             rms: x (1 / sqrt(sum x^2 / D + eps)) w
//   scale of a query head: s_d x
//
// q, k: the rotation and the norm in the shape's order, a query head's scale last, each step's
// result rounded to 16 bits. v is copied. Between the roundings fp32, each operation explicit.
// The sum: lane i holds dims 8i .. 8i + 7, an fma chain over their squares from 0, then a xor tree
// over the lanes from half their number down to 1; above 256 dims lanes i and i + 32 are a
// thread's.
//
// Block: 4 warps; a warp takes one head, or several side by side where a head needs fewer than 32
// lanes. grid = (rows, splits, 1): the splits of a row share its H + 2 kv_heads heads, and no bit
// depends on how many there are. A row's sines and cosines are computed once a block.
// Chips: any. The bits are every chip's and the host's.
//
// The including source defines, in namespace broach::qk_rows after names.cuh: kHeadDim, kRatio,
// kRopeDim, kRopeStyle, kNorm, kOrder, kScalesQ, kLayout, kLayoutLength, kHalf, kChecked, kGeneric,
// kControl.

#include "attention/cache_rows.cuh"
#include "common/half.cuh"
#include "common/load.cuh"
#include "common/ops.cuh"
#include "common/sincos.cuh"
#include "common/sqrt.cuh"
#include "common/warp.cuh"
#include "qk_rows/names.cuh"
#include "qk_rows/params.h"

namespace broach::qk_rows {

using Params = BroachQkRows;

constexpr int kLanes = head_lanes(kHeadDim);
constexpr int kSubs = kHeadDim > 256 ? 2 : 1;
constexpr int kGroups = 32 / kLanes;
constexpr int kBlockHeads = block_heads(kHeadDim);

struct Shared {
  float cosines[kHeadDim / 2];  // of the row, a pair each
  float sines[kHeadDim / 2];
  alignas(16) float heads[kBlockHeads][kHeadDim];  // what a rotation pairs up
};

BROACH_DEVICE int rope_dim_of([[maybe_unused]] const Params& p) {
  return kGeneric ? p.rope_dim : kRopeDim;
}

BROACH_DEVICE int ratio_of([[maybe_unused]] const Params& p) {
  return kGeneric ? p.gqa_ratio : kRatio;
}

BROACH_DEVICE CacheShape cache_shape_of([[maybe_unused]] const Params& p) {
  if constexpr (kGeneric) return {static_cast<CacheLayout>(p.layout), p.layout_length};
  return {kLayout, kLayoutLength};
}

/// Ends the launch when a row's position, slot, page or angles are out of range.
BROACH_DEVICE void check_row(Thread thread, const Params& p, int position, int slot) {
  const CacheShape shape = cache_shape_of(p);
  if (slot < 0 || slot >= p.cache.slots) {
    fail(thread, "a row's slot is outside 0 to slots - 1", slot);
  }
  if (position < 0) fail(thread, "a row's position is negative", position);
  if (shape.layout != CacheLayout::kRing && position >= p.cache.length) {
    fail(thread, "a row's position is past its slot's length", position);
  }
  if (shape.layout == CacheLayout::kPaged) {
    const int page = cell_of(shape, pages_of(p.cache, slot), slot, position).slot_or_page;
    if (page < 0 || page >= p.cache.pages) {
      fail(thread, "a row's page is outside 0 to pages - 1", page);
    }
  }
}

/// One row's sines and cosines.
BROACH_DEVICE void turn_row(Thread thread, const Params& p, int position, Shared& shared) {
  BROACH_ROLLED
  for (int pair = static_cast<int>(thread.index()); pair < rope_dim_of(p) / 2; pair += kThreads) {
    const float angle = mul_rn(static_cast<float>(position), p.inverse_frequencies[pair]);
    if constexpr (kChecked) {
      if (angle > kSinCosMost || angle < -kSinCosMost) {
        fail(thread, "a row's position makes an angle past 2^20", position);
      }
    }
    const SinCos turned = sincos32(angle);
    shared.cosines[pair] = turned.cos;
    shared.sines[pair] = turned.sin;
  }
}

/// The dims that a thread holds of a head, and the head's place in shared memory.
struct Lane {
  int lane;
  float* head;

  BROACH_DEVICE int dim(int sub) const { return (lane + sub * kLanes) * 8; }
};

using Values = float[kSubs][8];

/// The rounding that ends a step.
BROACH_DEVICE float rounded(float value, bool rounds) {
  return rounds ? widen<kHalf>(narrow<kHalf>(value)) : value;
}

/// Rotates the head's first dims. Every lane of the warp takes part.
BROACH_DEVICE void rotate(Thread thread, const Params& p, const Lane& at, const Shared& shared,
                          Values& x) {
  const int rope_dim = rope_dim_of(p);
  if (rope_dim == 0) return;
  BROACH_UNROLL
  for (int sub = 0; sub < kSubs; ++sub) {
    if (at.dim(sub) >= kHeadDim) continue;
    BROACH_UNROLL
    for (int e = 0; e < 8; ++e) at.head[at.dim(sub) + e] = x[sub][e];
  }
  sync_warp(thread);
  constexpr bool kHalves = (kRopeStyle == RopeStyle::kHalf) != (kControl == Control::kWrongPairing);
  BROACH_UNROLL
  for (int sub = 0; sub < kSubs; ++sub) {
    BROACH_UNROLL
    for (int e = 0; e < 8; ++e) {
      const int dim = at.dim(sub) + e;
      if (dim >= rope_dim) continue;
      const bool is_first = kHalves ? dim < rope_dim / 2 : e % 2 == 0;
      const int other = !kHalves ? dim ^ 1 : is_first ? dim + rope_dim / 2 : dim - rope_dim / 2;
      const int pair = !kHalves ? dim / 2 : is_first ? dim : other;
      const float own = x[sub][e];
      const float partner = at.head[other];
      const float c = shared.cosines[pair];
      const float s = shared.sines[pair];
      const float turned =
          is_first ? fma_rn(own, c, -mul_rn(partner, s)) : fma_rn(partner, s, mul_rn(own, c));
      x[sub][e] = rounded(turned, kControl != Control::kRopeUnrounded);
    }
  }
  // The next head of the warp takes the same place.
  sync_warp(thread);
}

/// Normalises the head. Every lane of the warp takes part.
///
/// Shapes:  weights [D], read by an rms norm.
BROACH_DEVICE void normalise(Thread thread, const Params& p, const Lane& at, const float* weights,
                             Values& x) {
  if constexpr (kNorm == Norm::kNone) return;
  float part[1] = {0.0f};
  BROACH_UNROLL
  for (int sub = 0; sub < kSubs; ++sub) {
    float chain = 0.0f;
    BROACH_UNROLL
    for (int e = 0; e < 8; ++e) chain = fma_rn(x[sub][e], x[sub][e], chain);
    part[0] = sub == 0 ? chain : add_rn(part[0], chain);
  }
  const float sum = sum_tree<kLanes>(thread, part);
  constexpr bool kMean = kNorm == Norm::kRms;
  const float mean = kMean ? div_rn(sum, static_cast<float>(kHeadDim)) : sum;
  const float factor = div_rn(1.0f, sqrt32(add_rn(mean, p.epsilon)));
  BROACH_UNROLL
  for (int sub = 0; sub < kSubs; ++sub) {
    BROACH_UNROLL
    for (int e = 0; e < 8; ++e) {
      const int dim = at.dim(sub) + e;
      if (dim >= kHeadDim) continue;
      float normal = mul_rn(x[sub][e], factor);
      if constexpr (kMean) normal = mul_rn(normal, weights[dim]);
      x[sub][e] = rounded(normal, kControl != Control::kNormUnrounded);
    }
  }
}

/// Which of a row's heads a warp's group works on: H query heads, then k's, then v's.
struct Head {
  const unsigned short* from;  ///< [D]
  unsigned short* to;          ///< [D]
  const float* weights;        ///< [D], of an rms norm
  const float* scale;          ///< [D], of a query head where the shape scales it; else null
  bool is_value;
};

BROACH_DEVICE Head head_of(const Params& p, int row, const CacheCell& cell, int index) {
  const int q_heads = p.cache.kv_heads * ratio_of(p);
  if (index < q_heads) {
    return {elements(p.q) + row * p.q_row_stride + index * p.q_head_stride,
            elements(p.q_out) + row * p.q_out_row_stride + index * p.q_out_head_stride, p.q_norm,
            kScalesQ ? p.q_scale + index * p.q_scale_head_stride : nullptr, false};
  }
  const int kv_head = (index - q_heads) % p.cache.kv_heads;
  if (index < q_heads + p.cache.kv_heads) {
    return {elements(p.k) + row * p.k_row_stride + kv_head * p.k_head_stride,
            elements(p.cache.k) + cell.offset(p.cache.k_slot_stride, p.cache.k_position_stride) +
                kv_head * p.cache.k_head_stride,
            p.k_norm, nullptr, false};
  }
  return {elements(p.v) + row * p.v_row_stride + kv_head * p.v_head_stride,
          elements(p.cache.v) + cell.offset(p.cache.v_slot_stride, p.cache.v_position_stride) +
              kv_head * p.cache.v_head_stride,
          p.k_norm, nullptr, true};
}

/// Prepares one head a group of lanes. Every lane of the warp takes part: a group that has no head
/// (`is_there` false) works on zeros, one that copies a value head ignores what comes of it.
BROACH_DEVICE void prepare(Thread thread, const Params& p, const Lane& at, const Head& head,
                           bool is_there, const Shared& shared) {
  Halves8 halves[kSubs];
  Values x;
  BROACH_UNROLL
  for (int sub = 0; sub < kSubs; ++sub) {
    halves[sub] = Halves8{{0, 0, 0, 0}};
    // A plain load: q may be where this head is written to.
    if (is_there && at.dim(sub) < kHeadDim) halves[sub] = shared8(head.from + at.dim(sub));
    BROACH_UNROLL
    for (unsigned e = 0; e < 8; ++e) x[sub][e] = widen<kHalf>(halves[sub], e);
  }
  if constexpr (kOrder == Order::kRopeNorm) rotate(thread, p, at, shared, x);
  normalise(thread, p, at, head.weights, x);
  if constexpr (kOrder == Order::kNormRope) rotate(thread, p, at, shared, x);
  if (!is_there) return;
  BROACH_UNROLL
  for (int sub = 0; sub < kSubs; ++sub) {
    const int dim = at.dim(sub);
    if (dim >= kHeadDim) continue;
    if (!head.is_value) {
      BROACH_UNROLL
      for (int e = 0; e < 8; e += 2) {
        float low = x[sub][e];
        float high = x[sub][e + 1];
        if (kScalesQ && head.scale != nullptr) {
          low = mul_rn(head.scale[dim + e], low);
          high = mul_rn(head.scale[dim + e + 1], high);
        }
        halves[sub].words[e / 2] = narrow_pair<kHalf>(low, high);
      }
    }
    share8(head.to + dim, halves[sub]);
  }
}

BROACH_GLOBAL(broach_qk_rows, kThreads, BroachQkRows, Shared) {
  const int row = static_cast<int>(thread.block_x());
  const int position = params.positions[row];
  const int slot = params.slots[row];
  if constexpr (kChecked) check_row(thread, params, position, slot);
  turn_row(thread, params, position, shared);
  sync_block(thread);

  const CacheShape shape = cache_shape_of(params);
  const CacheCell cell =
      cell_of(shape, shape.layout == CacheLayout::kPaged ? pages_of(params.cache, slot) : nullptr,
              slot, position);
  const int lane = static_cast<int>(thread.lane());
  const int place = static_cast<int>(thread.warp()) * kGroups + lane / kLanes;
  const Lane at{lane % kLanes, shared.heads[place]};
  const int heads = params.cache.kv_heads * (ratio_of(params) + 2);
  const int step = static_cast<int>(thread.grid_y()) * kBlockHeads;
  BROACH_ROLLED
  for (int first = static_cast<int>(thread.block_y()) * kBlockHeads; first < heads; first += step) {
    const bool is_there = first + place < heads;
    const Head head = head_of(params, row, cell, is_there ? first + place : 0);
    prepare(thread, params, at, head, is_there, shared);
  }
}

}  // namespace broach::qk_rows
