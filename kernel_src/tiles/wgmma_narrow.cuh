#pragma once

// wgmma with int8 operands (m64n64k32, 32-bit integer accumulators) and with f16 operands and
// accumulators (m64n64k16). Order, waits and descriptors are those of tiles/wgmma.cuh.
//
// Lane l of warp w holds of d[i][..], i the block of 8 columns, what mma_m16n8k32_s8 or
// mma_m16n8k16_f16 would hold of rows 16 w .. 16 w + 15. One f16 output is the same step over
// k = 16 as mma.sync's; integers are exact. Operands in shared memory are rows of 128 bytes of k in
// 128-byte swizzle (tiles/swizzle.cuh). Chips: sm_90a; no host form.

#include "tiles/wgmma.cuh"

namespace broach {

#if defined(BROACH_CUDA)

constexpr unsigned long long kThirtyTwoBytes = 32 / 16;  // of a descriptor, within a row

/// Keeps reads of accumulators behind the wait before it.
BROACH_DEVICE void wgmma_fence_accumulators(int (&d)[8][4]) {
  BROACH_UNROLL
  for (int i = 0; i < 8; ++i) {
    asm volatile("" : "+r"(d[i][0]), "+r"(d[i][1]), "+r"(d[i][2]), "+r"(d[i][3])::"memory");
  }
}
BROACH_DEVICE void wgmma_fence_accumulators(unsigned (&d)[8][2]) {
  BROACH_UNROLL
  for (int i = 0; i < 8; ++i) asm volatile("" : "+r"(d[i][0]), "+r"(d[i][1])::"memory");
}

/// d = a b, or d += a b: a [64][32 bytes] and b [64 columns][32 bytes], both from shared memory.
BROACH_DEVICE void wgmma_m64n64k32_s8(int (&d)[8][4], unsigned long long a, unsigned long long b,
                                      bool accumulates) {
  asm volatile(
      "{\n"
      ".reg .pred accumulates;\n"
      "setp.ne.b32 accumulates, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k32.s32.s8.s8 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "%32, %33, accumulates;\n"
      "}"
      : "+r"(d[0][0]), "+r"(d[0][1]), "+r"(d[0][2]), "+r"(d[0][3]), "+r"(d[1][0]), "+r"(d[1][1]),
        "+r"(d[1][2]), "+r"(d[1][3]), "+r"(d[2][0]), "+r"(d[2][1]), "+r"(d[2][2]), "+r"(d[2][3]),
        "+r"(d[3][0]), "+r"(d[3][1]), "+r"(d[3][2]), "+r"(d[3][3]), "+r"(d[4][0]), "+r"(d[4][1]),
        "+r"(d[4][2]), "+r"(d[4][3]), "+r"(d[5][0]), "+r"(d[5][1]), "+r"(d[5][2]), "+r"(d[5][3]),
        "+r"(d[6][0]), "+r"(d[6][1]), "+r"(d[6][2]), "+r"(d[6][3]), "+r"(d[7][0]), "+r"(d[7][1]),
        "+r"(d[7][2]), "+r"(d[7][3])
      : "l"(a), "l"(b), "r"(accumulates ? 1 : 0)
      : "memory");
}

/// d = a b, or d += a b: a [16 rows of the warp][16] from registers, as mma_m16n8k16's; b
/// [64 columns][16] from shared memory.
BROACH_DEVICE void wgmma_m64n64k16_f16(unsigned (&d)[8][2], const unsigned (&a)[4],
                                       unsigned long long b, bool accumulates) {
  asm volatile(
      "{\n"
      ".reg .pred accumulates;\n"
      "setp.ne.b32 accumulates, %21, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f16.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, "
      "{%16, %17, %18, %19}, %20, accumulates, 1, 1, 0;\n"
      "}"
      : "+r"(d[0][0]), "+r"(d[0][1]), "+r"(d[1][0]), "+r"(d[1][1]), "+r"(d[2][0]), "+r"(d[2][1]),
        "+r"(d[3][0]), "+r"(d[3][1]), "+r"(d[4][0]), "+r"(d[4][1]), "+r"(d[5][0]), "+r"(d[5][1]),
        "+r"(d[6][0]), "+r"(d[6][1]), "+r"(d[7][0]), "+r"(d[7][1])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulates ? 1 : 0)
      : "memory");
}

/// Waits for the threads of one group among several of a block; `id` from 1 on.
BROACH_DEVICE void sync_named(unsigned id, unsigned threads) {
  asm volatile("barrier.sync.aligned %0, %1;" : : "r"(id), "r"(threads) : "memory");
}

#endif

}  // namespace broach
