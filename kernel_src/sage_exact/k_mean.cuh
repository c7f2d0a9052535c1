#pragma once

// Boundary 1: mean[h, d] = bf16(total * factor), total = the sum of k[n, h, d] over tokens in one
// fixed tree, the reference's on a device of a given size.
//
//   thread (x, y) of block (h, c): four sums a0 .. a3 of tokens y + 4 c + i step, i ascending, in
//     turn; a rest of fewer than four goes to a0, a1, a2; partial = ((a0 + a1) + a2) + a3
//   block: v[y] += v[y + 2] for y < 2, then v[0] += v[1]
//   between blocks: y sums the blocks y, y + 4, ... from 0; then as within a block
//
// No operation flushes. Block: 128 threads, x = 32 groups of 4 dims, y = 4. grid = (H, blocks) of
// broach_sage_exact_k_mean_part, then (H) of broach_sage_exact_k_mean.

#include "sage_exact/arith.cuh"
#include "sage_exact/params.h"

namespace broach::sage_exact {

constexpr int kMeanThreads = 128;
constexpr int kMeanDims = 4;   // a thread
constexpr int kMeanLanes = 4;  // y

struct MeanShared {
  float v[kMeanLanes][kHeadDim];
};

/// The block's sums over y; the first 32 threads have them.
BROACH_DEVICE void sum_over_y(Thread thread, MeanShared& shared, float (&sums)[kMeanDims]) {
  const unsigned y = thread.index() / 32;
  const unsigned first = thread.index() % 32 * kMeanDims;
  BROACH_UNROLL
  for (int i = 0; i < kMeanDims; ++i) shared.v[y][first + i] = sums[i];
  sync_block(thread);
  BROACH_UNROLL
  for (int i = 0; i < kMeanDims; ++i) {
    const unsigned d = first + i;
    sums[i] =
        add_rn(add_rn(shared.v[0][d], shared.v[2][d]), add_rn(shared.v[1][d], shared.v[3][d]));
  }
}

/// Four dims of a token, bf16.
struct Dims4 {
  unsigned words[2];
};

BROACH_DEVICE Dims4 load_dims(const unsigned short* at) {
#if defined(BROACH_CUDA)
  const uint2 v = __ldg(reinterpret_cast<const uint2*>(at));
  return Dims4{{v.x, v.y}};
#else
  Dims4 dims;
  __builtin_memcpy(&dims, at, sizeof(dims));
  return dims;
#endif
}

BROACH_DEVICE void add_dims(float (&sums)[kMeanDims], const Dims4& dims) {
  BROACH_UNROLL
  for (int i = 0; i < 2; ++i) {
    sums[2 * i] = add_rn(sums[2 * i], float_of(dims.words[i] << 16));
    sums[2 * i + 1] = add_rn(sums[2 * i + 1], float_of(dims.words[i] & 0xffff0000u));
  }
}

}  // namespace broach::sage_exact

BROACH_GLOBAL(broach_sage_exact_k_mean_part, broach::sage_exact::kMeanThreads, BroachSageExactMean,
              broach::sage_exact::MeanShared) {
  using namespace broach;
  using namespace broach::sage_exact;
  const unsigned head = thread.block_x();
  const unsigned y = thread.index() / 32;
  const unsigned first = thread.index() % 32 * kMeanDims;
  const unsigned short* const k = params.k + head * params.head_stride + first;
  float sums[4][kMeanDims] = {};
  if (y < static_cast<unsigned>(params.lanes)) {
    long long token = static_cast<long long>(y) + 4ll * thread.block_y();
    const long long step = params.step;
    while (token + 3 * step < params.tokens) {
      Dims4 loaded[4];
      BROACH_UNROLL
      for (int i = 0; i < 4; ++i) loaded[i] = load_dims(k + (token + i * step) * params.row_stride);
      BROACH_UNROLL
      for (int i = 0; i < 4; ++i) add_dims(sums[i], loaded[i]);
      token += 4 * step;
    }
    BROACH_UNROLL
    for (int i = 0; i < 3; ++i) {
      if (token < params.tokens) add_dims(sums[i], load_dims(k + token * params.row_stride));
      token += step;
    }
  }
  float total[kMeanDims];
  BROACH_UNROLL
  for (int i = 0; i < kMeanDims; ++i) {
    total[i] = add_rn(add_rn(add_rn(sums[0][i], sums[1][i]), sums[2][i]), sums[3][i]);
  }
  if (params.lanes == kMeanLanes) sum_over_y(thread, shared, total);
  if (y != 0) return;
  float* const partial =
      params.partial +
      (static_cast<long long>(head) * params.blocks + thread.block_y()) * kHeadDim + first;
  BROACH_UNROLL
  for (int i = 0; i < kMeanDims; ++i) partial[i] = total[i];
}

BROACH_GLOBAL(broach_sage_exact_k_mean, broach::sage_exact::kMeanThreads, BroachSageExactMean,
              broach::sage_exact::MeanShared) {
  using namespace broach;
  using namespace broach::sage_exact;
  const unsigned head = thread.block_x();
  const unsigned y = thread.index() / 32;
  const unsigned first = thread.index() % 32 * kMeanDims;
  const float* const partial =
      params.partial + static_cast<long long>(head) * params.blocks * kHeadDim + first;
  float total[kMeanDims] = {};
  if (params.blocks == 1) {
    BROACH_UNROLL
    for (int i = 0; i < kMeanDims; ++i) total[i] = partial[i];
  } else {
    for (int block = static_cast<int>(y); block < params.blocks; block += kMeanLanes) {
      BROACH_UNROLL
      for (int i = 0; i < kMeanDims; ++i) {
        total[i] = add_rn(total[i], partial[static_cast<long long>(block) * kHeadDim + i]);
      }
    }
    sum_over_y(thread, shared, total);
  }
  if (y != 0) return;
  BROACH_UNROLL
  for (int i = 0; i < kMeanDims; ++i) {
    const float mean = mul_rn(total[i], params.factor);
    params.mean[head * kHeadDim + first + i] = narrow<Half::kBf16>(mean);
    if constexpr (kControl == Control::kMeanUnrounded) {
      params.partial[static_cast<long long>(head) * params.blocks * kHeadDim + first + i] = mean;
    }
  }
}
