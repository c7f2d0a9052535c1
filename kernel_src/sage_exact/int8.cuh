#pragma once

// Boundary 2: groups of 32 query rows, or of 64 key rows less their mean, as int8 with one scale a
// group and head.
//
//   x = q or k - mean, fp32          amax = max(1e-7, |x| of the group's rows below N)
//   scale = amax * fp32(1 / 127)     out = int8(x * (rcp~(amax) * 127))
//
// A NaN takes no part in a maximum and becomes 0. Rows from N on count as zeros and are not stored;
// a group without a row has the scale of zeros.
//
// Block: 256 threads, 16 a row, 8 dims each. grid = (groups, H). Chips: any.

#include "common/load.cuh"
#include "common/warp.cuh"
#include "sage_exact/arith.cuh"
#include "sage_exact/params.h"

namespace broach::sage_exact {

constexpr int kInt8Threads = 256;
constexpr int kInt8Dims = 8;  // a thread and row
constexpr int kRowThreads = kHeadDim / kInt8Dims;
constexpr int kPassRows = kInt8Threads / kRowThreads;

struct Int8Shared {
  float most[kInt8Threads / kWarpLanes];
};

/// The larger of a value and another lane's, over the warp, as max_ftz.
BROACH_DEVICE float max_ftz_warp(Thread thread, float value) {
#if defined(BROACH_HOST)
  return max_warp(thread, value);  // `value` is neither NaN nor subnormal
#else
  BROACH_UNROLL
  for (unsigned mask = kWarpLanes / 2; mask > 0; mask /= 2) {
    value = max_ftz(value, shuffle_xor(thread, value, mask));
  }
  return value;
#endif
}

template <int kRows, bool kCentred>
BROACH_DEVICE void quantise_group(Thread thread, const BroachSageExactInt8& p, Int8Shared& shared) {
  constexpr int kPasses = kRows / kPassRows;
  const unsigned head = thread.block_y();
  const unsigned first = thread.index() % kRowThreads * kInt8Dims;
  const long long row = static_cast<long long>(thread.block_x()) * kRows +
                        static_cast<long long>(thread.index() / kRowThreads);
  const unsigned short* const in = p.in + head * p.head_stride + first;
  Halves8 loaded[kPasses] = {};
  BROACH_UNROLL
  for (int pass = 0; pass < kPasses; ++pass) {
    const long long at = row + pass * kPassRows;
    if (at < p.tokens) loaded[pass] = load8(in + at * p.row_stride);
  }
  float mean[kInt8Dims] = {};
  if constexpr (kCentred && kControl != Control::kMeanLeftOut) {
    const Halves8 means = load8(p.mean + head * kHeadDim + first);
    const float* const unrounded =
        p.unrounded + static_cast<long long>(head) * p.mean_blocks * kHeadDim + first;
    BROACH_UNROLL
    for (int i = 0; i < kInt8Dims; ++i) {
      mean[i] = kControl == Control::kMeanUnrounded
                    ? unrounded[i]
                    : widen<Half::kBf16>(means, static_cast<unsigned>(i));
    }
  }
  float x[kPasses][kInt8Dims];
  float most = least_max();
  BROACH_UNROLL
  for (int pass = 0; pass < kPasses; ++pass) {
    const bool present = row + pass * kPassRows < p.tokens;
    BROACH_UNROLL
    for (int i = 0; i < kInt8Dims; ++i) {
      const float value = widen<Half::kBf16>(loaded[pass], static_cast<unsigned>(i));
      x[pass][i] = kCentred ? sub_ftz(value, mean[i]) : value;
      if (present) most = max_ftz(most, magnitude_of(x[pass][i]));
    }
  }
  most = max_ftz_warp(thread, most);
  if (thread.lane() == 0) shared.most[thread.warp()] = most;
  sync_block(thread);
  BROACH_UNROLL
  for (int i = 0; i < kInt8Threads / static_cast<int>(kWarpLanes); ++i) {
    most = max_ftz(most, shared.most[i]);
  }
  if (thread.index() == 0) {
    p.scale[static_cast<long long>(head) * p.groups + thread.block_x()] =
        kControl == Control::kIeeeDivision ? divide(most, kInt8Max) : mul_ftz(most, rcp_127());
  }
  const float inverse = divide(kInt8Max, most);
  BROACH_UNROLL
  for (int pass = 0; pass < kPasses; ++pass) {
    const long long at = row + pass * kPassRows;
    if (at >= p.tokens) continue;
    unsigned words[2] = {};
    BROACH_UNROLL
    for (int i = 0; i < kInt8Dims; ++i) {
      const auto byte = static_cast<unsigned>(int8_of(mul_ftz(x[pass][i], inverse))) & 0xffu;
      words[i / 4] |= byte << i % 4 * 8;
    }
    signed char* const out = p.out + (at * p.heads + head) * kHeadDim + first;
#if defined(BROACH_CUDA)
    *reinterpret_cast<uint2*>(out) = make_uint2(words[0], words[1]);
#else
    __builtin_memcpy(out, words, sizeof(words));
#endif
  }
}

}  // namespace broach::sage_exact

BROACH_GLOBAL(broach_sage_exact_q_int8, broach::sage_exact::kInt8Threads, BroachSageExactInt8,
              broach::sage_exact::Int8Shared) {
  broach::sage_exact::quantise_group<32, false>(thread, params, shared);
}

BROACH_GLOBAL(broach_sage_exact_k_int8, broach::sage_exact::kInt8Threads, BroachSageExactInt8,
              broach::sage_exact::Int8Shared) {
  broach::sage_exact::quantise_group<64, true>(thread, params, shared);
}
