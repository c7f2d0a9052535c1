#pragma once

// mma.sync.m16n8k32 of E4M3 values with an f16 accumulator: d[16 x 8] += a[16 x 32] b[32 x 8].
//
// Fragments a and b are those of tiles/mma_s8.cuh with E4M3 bytes, d that of tiles/mma_f16.cuh.
//
// What the instruction is depends on the chip. sm_89, sm_120 and sm_121 have one. On sm_90 its bits
// are those of the chain below, which every other target computes as well:
//   u = a_low b_low        f16 step from 0; low: k with k % 4 in {0, 1}
//   u = a_high b_high + u  f16 step
//   d = u + d              f16 addition
// A chip's own instruction does not give the chain's bits.

#include "common/e4m3.cuh"
#include "common/modelled.cuh"
#include "common/platform.cuh"
#include "tiles/mma_f16.cuh"

#if defined(BROACH_CUDA) && (__CUDA_ARCH__ == 890 || __CUDA_ARCH__ >= 1200)
#define BROACH_E4M3_MMA 1
#endif

namespace broach {

/// d[i] += a b[i] for kBlocks column blocks. Every lane takes part.
template <unsigned kBlocks>
BROACH_DEVICE void mma_m16n8k32_e4m3([[maybe_unused]] Thread thread, unsigned (&d)[kBlocks][2],
                                     const unsigned (&a)[4], const unsigned (&b)[kBlocks][2]) {
#if defined(BROACH_E4M3_MMA)
  BROACH_UNROLL
  for (unsigned i = 0; i < kBlocks; ++i) {
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e4m3.f16 {%0, %1}, "
        "{%2, %3, %4, %5}, {%6, %7}, {%0, %1};"
        : "+r"(d[i][0]), "+r"(d[i][1])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[i][0]), "r"(b[i][1]));
  }
#else
  unsigned sums[kBlocks][2] = {};
  BROACH_STEPS
  for (unsigned shift = 0; shift < 32; shift += 16) {
    unsigned left[4];
    unsigned right[kBlocks][2];
    BROACH_UNROLL
    for (unsigned word = 0; word < 4; ++word) left[word] = f16_pair_of_e4m3(a[word] >> shift);
    BROACH_UNROLL
    for (unsigned i = 0; i < kBlocks; ++i) {
      right[i][0] = f16_pair_of_e4m3(b[i][0] >> shift);
      right[i][1] = f16_pair_of_e4m3(b[i][1] >> shift);
    }
    mma_m16n8k16_f16(thread, sums, left, right);
  }
  BROACH_UNROLL
  for (unsigned i = 0; i < kBlocks; ++i) {
    d[i][0] = add_f16_pair(sums[i][0], d[i][0]);
    d[i][1] = add_f16_pair(sums[i][1], d[i][1]);
  }
#endif
}

}  // namespace broach
