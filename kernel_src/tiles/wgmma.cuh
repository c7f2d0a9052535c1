#pragma once

// wgmma.m64n64k16: d[64 x 64] += a[64 x 16] b[16 x 64], 16-bit inputs, fp32 accumulator, by the
// four warps of a warpgroup at once, asynchronously.
//
// One output is the same fused step over k = 16 as mma.sync's on the same chip (tiles/mma.cuh), so
// a chain of these gives the bits of that chain. Lane l of warp w holds of d[i][e], i the column
// block, what mma_m16n8k16 would hold of rows 16 w .. 16 w + 15: c[e] of column block i.
//
// Operands from shared memory are swizzled tiles (tiles/swizzle.cuh).
//
// Order: wgmma_fence before a chain whose accumulators or register operands were touched by other
// instructions; wgmma_commit closes a group; wgmma_wait<n> returns when all but the n latest groups
// are done, and only then may accumulators be read or operands be overwritten. Tiles that cp.async
// or stores have written need async_proxy_fence between their arrival and a WGMMA. Chips: sm_90a;
// no host form, whose kernels are made of tiles/mma.cuh.

#include "common/half.cuh"
#include "common/platform.cuh"
#include "common/warp.cuh"
#include "tiles/swizzle.cuh"

namespace broach {

#if defined(BROACH_CUDA)

/// The matrix descriptor of a swizzled tile: address and strides in units of 16 bytes, groups of 8
/// rows, 128-byte swizzle.
///
/// From one lane, so that a compiler sees that it is uniform.
BROACH_DEVICE unsigned long long swizzle_descriptor(Thread thread, const unsigned short* tile) {
  const unsigned address =
      shuffle(thread, static_cast<unsigned>(__cvta_generic_to_shared(tile)), 0);
  constexpr unsigned long long kSwizzle128 = 1ull << 62;
  constexpr unsigned long long kEightRows = 1024ull / 16 << 32;
  constexpr unsigned long long kLeadingUnused = 1ull << 16;
  return kSwizzle128 | kEightRows | kLeadingUnused | (address & 0x3ffffu) >> 4;
}

// A descriptor some rows or columns on: the swizzle follows from the address.
constexpr unsigned long long kSixteenColumns = 16 * 2 / 16;
constexpr unsigned long long kSixteenRows = 16 * kSwizzleColumns * 2 / 16;

BROACH_DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

BROACH_DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

template <int kPending>
BROACH_DEVICE void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" : : "n"(kPending) : "memory");
}

/// Keeps reads of accumulators behind the wait before it.
BROACH_DEVICE void wgmma_fence_accumulators(float (&d)[8][4]) {
  BROACH_UNROLL
  for (int i = 0; i < 8; ++i) {
    asm volatile("" : "+f"(d[i][0]), "+f"(d[i][1]), "+f"(d[i][2]), "+f"(d[i][3])::"memory");
  }
}

/// Orders this thread's view of shared memory before what the asynchronous units read of it.
BROACH_DEVICE void async_proxy_fence() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// %0 .. %31 are the accumulators, %32 says whether they are added to.
#define BROACH_WGMMA(type, operands, ...)                                                          \
  asm volatile(                                                                                    \
      "{\n"                                                                                        \
      ".reg .pred accumulates;\n"                                                                  \
      "setp.ne.b32 accumulates, %32, 0;\n"                                                         \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type                                  \
      " "                                                                                          \
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                    \
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, " operands \
      ";\n"                                                                                        \
      "}"                                                                                          \
      : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]), "+f"(d[1][0]), "+f"(d[1][1]),  \
        "+f"(d[1][2]), "+f"(d[1][3]), "+f"(d[2][0]), "+f"(d[2][1]), "+f"(d[2][2]), "+f"(d[2][3]),  \
        "+f"(d[3][0]), "+f"(d[3][1]), "+f"(d[3][2]), "+f"(d[3][3]), "+f"(d[4][0]), "+f"(d[4][1]),  \
        "+f"(d[4][2]), "+f"(d[4][3]), "+f"(d[5][0]), "+f"(d[5][1]), "+f"(d[5][2]), "+f"(d[5][3]),  \
        "+f"(d[6][0]), "+f"(d[6][1]), "+f"(d[6][2]), "+f"(d[6][3]), "+f"(d[7][0]), "+f"(d[7][1]),  \
        "+f"(d[7][2]), "+f"(d[7][3])                                                               \
      : "r"(accumulates ? 1 : 0), __VA_ARGS__                                                      \
      : "memory")

/// d = a b, or d += a b: a [64][16] and b from swizzled tiles; b's rows are d's columns ([64][16]).
template <Half kHalf>
BROACH_DEVICE void wgmma_m64n64k16(float (&d)[8][4], unsigned long long a, unsigned long long b,
                                   bool accumulates) {
  if constexpr (kHalf == Half::kBf16) {
    BROACH_WGMMA("bf16", "%33, %34, accumulates, 1, 1, 0, 0", "l"(a), "l"(b));
  } else {
    BROACH_WGMMA("f16", "%33, %34, accumulates, 1, 1, 0, 0", "l"(a), "l"(b));
  }
}

/// d = a b, or d += a b: a [16 rows of the warp][16] from registers, as mma_m16n8k16's; b from a
/// swizzled tile whose rows are k ([16][64]).
template <Half kHalf>
BROACH_DEVICE void wgmma_m64n64k16(float (&d)[8][4], const unsigned (&a)[4], unsigned long long b,
                                   bool accumulates) {
  if constexpr (kHalf == Half::kBf16) {
    BROACH_WGMMA("bf16", "{%33, %34, %35, %36}, %37, accumulates, 1, 1, 1", "r"(a[0]), "r"(a[1]),
                 "r"(a[2]), "r"(a[3]), "l"(b));
  } else {
    BROACH_WGMMA("f16", "{%33, %34, %35, %36}, %37, accumulates, 1, 1, 1", "r"(a[0]), "r"(a[1]),
                 "r"(a[2]), "r"(a[3]), "l"(b));
  }
}

#undef BROACH_WGMMA

#endif

}  // namespace broach
