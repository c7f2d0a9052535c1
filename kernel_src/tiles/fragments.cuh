#pragma once

// Fragments of mma_m16n8k16 from shared memory: ldmatrix on NVIDIA, plain loads on the host (a lane
// knows where its own values lie, so nothing has to meet).
//
// Shapes: tiles are 16-bit, rows `stride` elements apart; rows start 16-byte aligned. Rows whose
// stride is an odd number of 16-byte units keep ldmatrix free of bank conflicts.

#include "common/platform.cuh"

namespace broach {

#if defined(BROACH_CUDA)
/// Four 8 x 8 matrices; lanes 8i .. 8i + 7 hold the addresses of matrix i's rows.
template <bool kTransposed>
BROACH_DEVICE void load_matrices(unsigned (&words)[4], const unsigned short* row) {
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(row));
  if constexpr (kTransposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(address)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(address)
                 : "memory");
  }
}
#else
/// Values (row, column) and (row, column + 1).
BROACH_DEVICE unsigned pair_at(const unsigned short* tile, unsigned stride, unsigned row,
                               unsigned column) {
  const unsigned short* const at = tile + row * stride + column;
  return at[0] | static_cast<unsigned>(at[1]) << 16;
}

/// Values (row, column) and (row + 1, column).
BROACH_DEVICE unsigned column_pair_at(const unsigned short* tile, unsigned stride, unsigned row,
                                      unsigned column) {
  const unsigned short* const at = tile + row * stride + column;
  return at[0] | static_cast<unsigned>(at[stride]) << 16;
}
#endif

/// Operand a [m 16][k 16] from a tile of rows m.
BROACH_DEVICE void load_a(Thread thread, unsigned (&a)[4], const unsigned short* tile,
                          unsigned stride) {
  const unsigned lane = thread.lane();
#if defined(BROACH_CUDA)
  load_matrices<false>(a, tile + lane % 16 * stride + lane / 16 * 8);
#else
  for (unsigned i = 0; i < 4; ++i) {
    a[i] = pair_at(tile, stride, lane / 4 + i % 2 * 8, lane % 4 * 2 + i / 2 * 8);
  }
#endif
}

/// Operand a [m 16][k 16] from a tile of rows k.
BROACH_DEVICE void load_a_transposed(Thread thread, unsigned (&a)[4], const unsigned short* tile,
                                     unsigned stride) {
  const unsigned lane = thread.lane();
#if defined(BROACH_CUDA)
  load_matrices<true>(a, tile + (lane % 8 + lane / 16 * 8) * stride + lane / 8 % 2 * 8);
#else
  for (unsigned i = 0; i < 4; ++i) {
    a[i] = column_pair_at(tile, stride, lane % 4 * 2 + i / 2 * 8, lane / 4 + i % 2 * 8);
  }
#endif
}

/// Operand b for two steps [k 32][n 8] from a tile of rows n: b[0], b[1] are the first step's.
BROACH_DEVICE void load_b_two_steps(Thread thread, unsigned (&b)[4], const unsigned short* tile,
                                    unsigned stride) {
  const unsigned lane = thread.lane();
#if defined(BROACH_CUDA)
  load_matrices<false>(b, tile + lane % 8 * stride + lane / 8 * 8);
#else
  for (unsigned i = 0; i < 4; ++i) b[i] = pair_at(tile, stride, lane / 4, lane % 4 * 2 + i * 8);
#endif
}

/// Operand b for two column blocks [k 16][n 16] from a tile of rows n: b[0], b[1] are n 0 .. 7's.
BROACH_DEVICE void load_b_two_blocks(Thread thread, unsigned (&b)[4], const unsigned short* tile,
                                     unsigned stride) {
  const unsigned lane = thread.lane();
#if defined(BROACH_CUDA)
  load_matrices<false>(b, tile + (lane % 8 + lane / 16 * 8) * stride + lane / 8 % 2 * 8);
#else
  for (unsigned i = 0; i < 4; ++i) {
    b[i] = pair_at(tile, stride, lane / 4 + i / 2 * 8, lane % 4 * 2 + i % 2 * 8);
  }
#endif
}

/// Operand b for two column blocks [k 16][n 16] from a tile of rows k.
BROACH_DEVICE void load_b_transposed(Thread thread, unsigned (&b)[4], const unsigned short* tile,
                                     unsigned stride) {
  const unsigned lane = thread.lane();
#if defined(BROACH_CUDA)
  load_matrices<true>(b, tile + lane % 16 * stride + lane / 16 * 8);
#else
  for (unsigned i = 0; i < 4; ++i) {
    b[i] = column_pair_at(tile, stride, lane % 4 * 2 + i % 2 * 8, lane / 4 + i / 2 * 8);
  }
#endif
}

}  // namespace broach
