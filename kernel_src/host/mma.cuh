#pragma once

// The host form of mma.sync: the warp's fragments meet, one thread runs the exact model of the
// step, and every lane takes its part of the result away.

#include "common/half.cuh"
#include "common/ops.cuh"
#include "common/warp.cuh"
#include "tiles/mma_step_block.cuh"

namespace broach {

template <Half kHalf>
struct MatrixFormat;
template <>
struct MatrixFormat<Half::kBf16> {
  using type = tiles::Bf16Format;
};
template <>
struct MatrixFormat<Half::kF16> {
  using type = tiles::F16Format;
};

#if defined(BROACH_MMA_STEP_TWO_K8)
using HostMmaStep = tiles::TwoK8;
#else
using HostMmaStep = tiles::OneK16;
#endif

/// What a lane brings: its accumulator, updated in place, and its operands.
template <Half kHalf>
struct MmaLane {
  float* c;           // [4]
  const unsigned* a;  // [4]
  const unsigned* b;  // [2]
};

template <Half kHalf>
struct MmaM16n8k16 {
  static void apply(MmaLane<kHalf>* const* lanes, unsigned) {
    unsigned short a[16][16];
    unsigned short b[16][8];
    unsigned c[16][8];
    for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
      const unsigned g = lane / 4;
      const unsigned t = lane % 4;
      for (unsigned word = 0; word < 4; ++word) {
        const unsigned m = g + word % 2 * 8;
        const unsigned k = 2 * t + word / 2 * 8;
        a[m][k] = static_cast<unsigned short>(lanes[lane]->a[word] & 0xffffu);
        a[m][k + 1] = static_cast<unsigned short>(lanes[lane]->a[word] >> 16);
      }
      for (unsigned word = 0; word < 2; ++word) {
        const unsigned k = 2 * t + word * 8;
        b[k][g] = static_cast<unsigned short>(lanes[lane]->b[word] & 0xffffu);
        b[k + 1][g] = static_cast<unsigned short>(lanes[lane]->b[word] >> 16);
      }
      for (unsigned i = 0; i < 4; ++i) {
        c[g + i / 2 * 8][2 * t + i % 2] = bits_of(lanes[lane]->c[i]);
      }
    }
    tiles::mma_step_block<typename MatrixFormat<kHalf>::type, HostMmaStep>(a, b, c);
    for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
      const unsigned g = lane / 4;
      const unsigned t = lane % 4;
      for (unsigned i = 0; i < 4; ++i) {
        lanes[lane]->c[i] = float_of(c[g + i / 2 * 8][2 * t + i % 2]);
      }
    }
  }
};

}  // namespace broach
