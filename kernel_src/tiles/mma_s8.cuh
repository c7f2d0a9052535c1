#pragma once

// mma.sync.m16n8k32 of 8-bit integers: c[16 x 8] += a[16 x 32] b[32 x 8] in 32-bit integers. Exact,
// so neither the order of the products nor the chip matters.
//
// Lane l, with g = l / 4 and t = l % 4, holds four signed bytes a word, the lowest k lowest:
//   a[0] (m g,     k 4t .. 4t+3)       a[1] (m g + 8, k 4t .. 4t+3)
//   a[2] (m g, k 16 + 4t .. 16+4t+3)   a[3] (m g + 8, k 16 + 4t .. 16+4t+3)
//   b[0] (k 4t .. 4t+3, n g)           b[1] (k 16 + 4t .. 16+4t+3, n g)
//   c[0], c[1] (m g, n 2t, 2t+1)       c[2], c[3] (m g + 8, n 2t, 2t+1)
//
// Chips: sm_80 and later; a chip without the instruction shuffles the operands and multiplies.

#include "common/platform.cuh"
#include "common/warp.cuh"

namespace broach {

/// The sum of four products of signed bytes.
BROACH_DEVICE int dot_s8(unsigned a, unsigned b) {
  int sum = 0;
  BROACH_UNROLL
  for (unsigned shift = 0; shift < 32; shift += 8) {
    sum += static_cast<int>(static_cast<signed char>(a >> shift & 0xffu)) *
           static_cast<int>(static_cast<signed char>(b >> shift & 0xffu));
  }
  return sum;
}

#if defined(BROACH_HOST)
template <unsigned kBlocks>
struct MmaS8Lane {
  int (*c)[4];             // [kBlocks][4]
  const unsigned* a;       // [4]
  const unsigned (*b)[2];  // [kBlocks][2]
};

template <unsigned kBlocks>
struct MmaS8 {
  static void apply(MmaS8Lane<kBlocks>* const* lanes, unsigned) {
    signed char a[16][32];
    for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
      for (unsigned word = 0; word < 4; ++word) {
        __builtin_memcpy(&a[lane / 4 + word % 2 * 8][lane % 4 * 4 + word / 2 * 16],
                         &lanes[lane]->a[word], 4);
      }
    }
    for (unsigned block = 0; block < kBlocks; ++block) {
      signed char b[8][32];
      for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
        for (unsigned word = 0; word < 2; ++word) {
          __builtin_memcpy(&b[lane / 4][lane % 4 * 4 + word * 16], &lanes[lane]->b[block][word], 4);
        }
      }
      for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
        for (unsigned i = 0; i < 4; ++i) {
          const signed char* const row = a[lane / 4 + i / 2 * 8];
          const signed char* const column = b[lane % 4 * 2 + i % 2];
          int sum = 0;
          for (unsigned k = 0; k < 32; ++k) {
            sum += static_cast<int>(row[k]) * static_cast<int>(column[k]);
          }
          lanes[lane]->c[block][i] += sum;
        }
      }
    }
  }
};
#endif

/// c[i] += a b[i] for kBlocks column blocks. Every lane takes part.
template <unsigned kBlocks>
BROACH_DEVICE void mma_m16n8k32_s8([[maybe_unused]] Thread thread, int (&c)[kBlocks][4],
                                   const unsigned (&a)[4], const unsigned (&b)[kBlocks][2]) {
#if defined(BROACH_HOST)
  MmaS8Lane<kBlocks> lane{c, a, b};
  meet_warp<MmaS8<kBlocks>>(thread, lane);
#elif defined(BROACH_CUDA)
  BROACH_UNROLL
  for (unsigned i = 0; i < kBlocks; ++i) {
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, "
        "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(c[i][0]), "+r"(c[i][1]), "+r"(c[i][2]), "+r"(c[i][3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[i][0]), "r"(b[i][1]));
  }
#else
  const unsigned g = thread.lane() / 4;
  const unsigned t = thread.lane() % 4;
  BROACH_ROLLED
  for (unsigned from = 0; from < 4; ++from) {
    unsigned rows[4];
    BROACH_UNROLL
    for (unsigned word = 0; word < 4; ++word) rows[word] = shuffle(thread, a[word], 4 * g + from);
    BROACH_UNROLL
    for (unsigned i = 0; i < kBlocks; ++i) {
      BROACH_UNROLL
      for (unsigned n = 0; n < 2; ++n) {
        const unsigned low = shuffle(thread, b[i][0], 4 * (2 * t + n) + from);
        const unsigned high = shuffle(thread, b[i][1], 4 * (2 * t + n) + from);
        c[i][n] += dot_s8(rows[0], low) + dot_s8(rows[2], high);
        c[i][2 + n] += dot_s8(rows[1], low) + dot_s8(rows[3], high);
      }
    }
  }
#endif
}

}  // namespace broach
