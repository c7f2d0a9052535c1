#pragma once

// mma.sync.m16n8k16: d[16 x 8] = a[16 x 16] b[16 x 8] + c, 16-bit inputs, fp32 accumulator.
//
// Fragments are the PTX ones. Lane l, with g = l / 4 and t = l % 4, holds
//   a[0] (m g,     k 2t, 2t+1)   a[1] (m g + 8, k 2t, 2t+1)
//   a[2] (m g, k 2t + 8, 2t+9)   a[3] (m g + 8, k 2t + 8, 2t+9)
//   b[0] (k 2t, 2t+1, n g)       b[1] (k 2t + 8, 2t+9, n g)
//   c[0], c[1] (m g, n 2t, 2t+1) c[2], c[3] (m g + 8, n 2t, 2t+1)
// two 16-bit values a word, the lower index in the low half.
//
// Chips: sm_80 and later. The host form is the exact model of the step: sm_90's, or sm_80's when
// BROACH_MMA_STEP_TWO_K8 is defined.

#include "common/half.cuh"
#include "common/platform.cuh"
#if defined(BROACH_HOST)
#include "host/mma.cuh"
#endif

namespace broach {

/// c += a b, one MMA step of the warp. Every lane takes part.
template <Half kHalf>
BROACH_DEVICE void mma_m16n8k16([[maybe_unused]] Thread thread, float (&c)[4],
                                const unsigned (&a)[4], const unsigned (&b)[2]) {
#if defined(BROACH_HOST)
  MmaLane<kHalf> lane{c, a, b};
  meet_warp<MmaM16n8k16<kHalf>>(thread, lane);
#elif defined(BROACH_CUDA)
  if constexpr (kHalf == Half::kBf16) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
        "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
        "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
#else
#error "mma_m16n8k16 has no form for this compiler's chips"
#endif
}

}  // namespace broach
