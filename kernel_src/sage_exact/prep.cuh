#pragma once

// Boundary 0: RMS norm of each head of q or k, then rotation of dims 0 to 95.
//
//   sum of squares: a lane's 4 dims by an fma chain from 0, lanes by a xor tree, masks 16 to 1
//   y = bf16((x * (1 / sqrt(sum / 128 + 1e-5))) * weight)          weight 1 where there is none
//   i < 48:  r[i]      = bf16(fma(-y[i + 48], sine[i], y[i] * cosine[i]))
//            r[i + 48] = bf16(fma( y[i],      sine[i], y[i + 48] * cosine[i]))
//   i >= 96: r[i] = y[i]
//
// fp32, nothing flushes, every operation rounds to nearest. Block: 8 warps, a token's head each;
// grid = (ceil(N H / 8)). In and out may be the same memory. Chips: any.

#include "common/half.cuh"
#include "common/sqrt.cuh"
#include "common/warp.cuh"
#include "sage_exact/params.h"

namespace broach::sage_exact {

constexpr int kPrepThreads = 256;
constexpr unsigned kPrepWarps = kPrepThreads / kWarpLanes;
constexpr int kRotatedPairs = 48;
constexpr unsigned kPairLanes = kRotatedPairs / 4;  ///< Lanes between the two dims of a pair.

}  // namespace broach::sage_exact

BROACH_GLOBAL(broach_sage_exact_prep, broach::sage_exact::kPrepThreads, BroachSageExactPrep,
              broach::NoShared) {
  using namespace broach;
  using namespace broach::sage_exact;
  const long long at = static_cast<long long>(thread.block_x()) * kPrepWarps + thread.warp();
  if (at >= static_cast<long long>(params.tokens) * params.heads) return;
  const long long token = at / params.heads;
  const long long head = at % params.heads;
  const unsigned lane = thread.lane();
  const unsigned short* const in =
      params.in + token * params.in_row_stride + head * params.in_head_stride + 4 * lane;
  float y[4];
  float part[1] = {0.0f};
  BROACH_UNROLL
  for (int i = 0; i < 4; ++i) {
    y[i] = widen<Half::kBf16>(in[i]);
    part[0] = fma_rn(y[i], y[i], part[0]);
  }
  const float mean = mul_rn(sum_tree<32>(thread, part), 0x1p-7f);
  const float inverse = div_rn(1.0f, sqrt32(add_rn(mean, 1e-5f)));
  BROACH_UNROLL
  for (int i = 0; i < 4; ++i) {
    float scaled = mul_rn(y[i], inverse);
    if (params.weight != nullptr) {
      scaled =
          mul_rn(scaled, widen<Half::kBf16>(params.weight[4 * lane + static_cast<unsigned>(i)]));
    }
    y[i] = widen<Half::kBf16>(narrow<Half::kBf16>(scaled));
  }
  // Lanes 0 to 11 hold the first dims of the pairs, 12 to 23 the second, the others none.
  const bool first = lane < kPairLanes;
  const bool rotated = lane < 2 * kPairLanes;
  const unsigned partner = first ? lane + kPairLanes : rotated ? lane - kPairLanes : lane;
  const unsigned pair = first ? lane : rotated ? lane - kPairLanes : 0;
  unsigned short* const out =
      params.out + token * params.out_row_stride + head * params.out_head_stride + 4 * lane;
  BROACH_UNROLL
  for (int i = 0; i < 4; ++i) {
    const float other = shuffle(thread, y[i], partner);
    float value = y[i];
    if (rotated) {
      const long long entry = token * kRotatedPairs + 4 * pair + static_cast<unsigned>(i);
      const float cosine = widen<Half::kBf16>(params.cosine[entry]);
      const float sine = widen<Half::kBf16>(params.sine[entry]);
      value = fma_rn(first ? -other : other, sine, mul_rn(y[i], cosine));
    }
    out[i] = narrow<Half::kBf16>(value);
  }
}
