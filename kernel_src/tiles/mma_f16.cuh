#pragma once

// mma.sync.m16n8k16 with f16 operands, accumulator and result: d[16 x 8] = a[16 x 16] b[16 x 8] +
// d.
//
// Fragments a and b are those of tiles/mma.cuh. Of d, lane l with g = l / 4 and t = l % 4 holds
//   d[0] (m g, n 2t, 2t+1)   d[1] (m g + 8, n 2t, 2t+1), the lower n in the low half.
//
// Chips: sm_80 and later. The host form is sm_90's exact model. A chip without the instruction
// shuffles the operands and runs the model.

#include "common/half.cuh"
#include "common/platform.cuh"
#include "common/warp.cuh"
#if defined(BROACH_HOST)
#include "tiles/mma_step_block_f16.cuh"
#elif defined(BROACH_HIP)
#include "tiles/mma_step_model.cuh"
#endif

namespace broach {

#if defined(BROACH_HOST)
template <unsigned kBlocks>
struct MmaF16Lane {
  unsigned (*d)[2];        // [kBlocks][2]
  const unsigned* a;       // [4]
  const unsigned (*b)[2];  // [kBlocks][2]
};

template <unsigned kBlocks>
struct MmaF16 {
  static void apply(MmaF16Lane<kBlocks>* const* lanes, unsigned) {
    unsigned short a[16][16];
    for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
      for (unsigned word = 0; word < 4; ++word) {
        __builtin_memcpy(&a[lane / 4 + word % 2 * 8][lane % 4 * 2 + word / 2 * 8],
                         &lanes[lane]->a[word], 4);
      }
    }
    for (unsigned block = 0; block < kBlocks; ++block) {
      unsigned short b[16][8];
      unsigned short d[16][8];
      for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
        const unsigned g = lane / 4;
        const unsigned t = lane % 4;
        for (unsigned word = 0; word < 2; ++word) {
          const unsigned pair = lanes[lane]->b[block][word];
          b[2 * t + word * 8][g] = static_cast<unsigned short>(pair & 0xffffu);
          b[2 * t + word * 8 + 1][g] = static_cast<unsigned short>(pair >> 16);
          __builtin_memcpy(&d[g + word * 8][2 * t], &lanes[lane]->d[block][word], 4);
        }
      }
      tiles::mma_step_block_f16(a, b, d);
      for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
        for (unsigned word = 0; word < 2; ++word) {
          __builtin_memcpy(&lanes[lane]->d[block][word], &d[lane / 4 + word * 8][lane % 4 * 2], 4);
        }
      }
    }
  }
};
#endif

/// d[i] += a b[i] for kBlocks column blocks. Every lane takes part.
template <unsigned kBlocks>
BROACH_DEVICE void mma_m16n8k16_f16([[maybe_unused]] Thread thread, unsigned (&d)[kBlocks][2],
                                    const unsigned (&a)[4], const unsigned (&b)[kBlocks][2]) {
#if defined(BROACH_HOST)
  MmaF16Lane<kBlocks> lane{d, a, b};
  meet_warp<MmaF16<kBlocks>>(thread, lane);
#elif defined(BROACH_CUDA)
  BROACH_UNROLL
  for (unsigned i = 0; i < kBlocks; ++i) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, "
        "{%2, %3, %4, %5}, {%6, %7}, {%0, %1};"
        : "+r"(d[i][0]), "+r"(d[i][1])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[i][0]), "r"(b[i][1]));
  }
#else
  const unsigned g = thread.lane() / 4;
  const unsigned t = thread.lane() % 4;
  // [row g, row g + 8][k], two values a word.
  unsigned rows[2][8];
  BROACH_UNROLL
  for (unsigned from = 0; from < 4; ++from) {
    BROACH_UNROLL
    for (unsigned word = 0; word < 4; ++word) {
      rows[word % 2][word / 2 * 4 + from] = shuffle(thread, a[word], 4 * g + from);
    }
  }
  BROACH_ROLLED
  for (unsigned i = 0; i < kBlocks; ++i) {
    unsigned results[2] = {};
    BROACH_ROLLED
    for (unsigned n = 0; n < 2; ++n) {
      unsigned column[8];
      BROACH_UNROLL
      for (unsigned from = 0; from < 4; ++from) {
        BROACH_UNROLL
        for (unsigned word = 0; word < 2; ++word) {
          column[word * 4 + from] = shuffle(thread, b[i][word], 4 * (2 * t + n) + from);
        }
      }
      const auto* const right = reinterpret_cast<const unsigned short*>(column);
      BROACH_ROLLED
      for (unsigned row = 0; row < 2; ++row) {
        const auto* const left = reinterpret_cast<const unsigned short*>(rows[row]);
        const auto before = static_cast<unsigned short>(d[i][row] >> 16 * n & 0xffffu);
        results[row] |= static_cast<unsigned>(
                            tiles::fused_step_f16<tiles::F16Format>(left, 1, right, 1, before))
                        << 16 * n;
      }
    }
    d[i][0] = results[0];
    d[i][1] = results[1];
  }
#endif
}

/// Two f16 sums, each to nearest even.
BROACH_DEVICE unsigned add_f16_pair(unsigned a, unsigned b) {
#if defined(BROACH_CUDA)
  unsigned sum;
  asm("add.rn.f16x2 %0, %1, %2;" : "=r"(sum) : "r"(a), "r"(b));
  return sum;
#else
  // 24 bits are enough for a second rounding, to 11, to give the bits of a single one.
  const auto half = [](unsigned pair, unsigned shift) {
    return widen<Half::kF16>(static_cast<unsigned short>(pair >> shift & 0xffffu));
  };
  return narrow<Half::kF16>(add_rn(half(a, 0), half(b, 0))) |
         static_cast<unsigned>(narrow<Half::kF16>(add_rn(half(a, 16), half(b, 16)))) << 16;
#endif
}

/// The fp32 values of the halves of a pair.
BROACH_DEVICE float low_f16(unsigned pair) {
  return widen<Half::kF16>(static_cast<unsigned short>(pair & 0xffffu));
}
BROACH_DEVICE float high_f16(unsigned pair) {
  return widen<Half::kF16>(static_cast<unsigned short>(pair >> 16));
}

}  // namespace broach
