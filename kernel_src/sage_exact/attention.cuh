#pragma once

// Boundary 4, step by step as the reference computes it: the oracle of faster kernels.
//
//   score = q k^T in int8, exact           softmax.cuh
//   of every tile and 32-key step s: x = E4M3(p) v by tiles/mma_e4m3.cuh from x = 0 at s = 0
//   o = o a + fp32(x) by one fma           out = bf16((o rcp~(d)) v_scale)
//
// Block: 4 warps of 16 query rows; grid = (ceil(N / 64), H). A row's bits do not depend on where it
// lies in a block. Shared memory: one key tile of K [64][128] and V [128][64] bytes, padded so that
// fragments are free of bank conflicts. Chips: any; sm_89, sm_120 and sm_121 have other bits
// (tiles/mma_e4m3.cuh).

#include "common/modelled.cuh"
#include "sage_exact/params.h"
#include "sage_exact/softmax.cuh"
#include "tiles/mma_e4m3.cuh"
#include "tiles/mma_s8.cuh"

namespace broach::sage_exact {

constexpr int kAttentionThreads = 128;
constexpr int kBlockRows = 64;
constexpr int kQueryBlock =
    128;  ///< Query rows whose groups have scales even beyond the last token.
constexpr int kDimBlocks = kHeadDim / 8;
constexpr int kScoreSteps = kHeadDim / 32;
constexpr int kPvSteps = kTileKeys / 32;
// Blocks of dims that P x V computes at a time. A model's operands and sums lie beside o: registers
// hold those of one block.
#if defined(BROACH_HIP)
constexpr int kPvBlocks = 1;
#else
constexpr int kPvBlocks = kDimBlocks;
#endif
constexpr unsigned kKStride = kHeadDim + 16;  // bytes
constexpr unsigned kVStride = kTileKeys + 16;

struct AttentionShared {
  unsigned char k[kTileKeys * kKStride];
  unsigned char v[kHeadDim * kVStride];
};

struct Bytes16 {
  unsigned words[4];
};

BROACH_DEVICE Bytes16 load16(const void* at) {
#if defined(BROACH_CUDA)
  const uint4 v = __ldg(reinterpret_cast<const uint4*>(at));
  return Bytes16{{v.x, v.y, v.z, v.w}};
#else
  Bytes16 bytes;
  __builtin_memcpy(&bytes, at, sizeof(bytes));
  return bytes;
#endif
}

BROACH_DEVICE unsigned word_at(const void* at) {
#if defined(BROACH_HOST)
  unsigned word;
  __builtin_memcpy(&word, at, sizeof(word));
  return word;
#else
  return *static_cast<const unsigned*>(at);
#endif
}

BROACH_DEVICE void store16(void* at, const Bytes16& bytes) {
#if defined(BROACH_HOST)
  __builtin_memcpy(at, &bytes, sizeof(bytes));
#else
  BROACH_UNROLL
  for (int i = 0; i < 4; ++i) static_cast<unsigned*>(at)[i] = bytes.words[i];
#endif
}

/// Copies a key tile into shared memory; keys from N on are zeros, V is padded as it lies.
BROACH_DEVICE void load_tile(Thread thread, const BroachSageExactAttention& p, int tile,
                             AttentionShared& shared) {
  const unsigned head = thread.block_y();
  const long long padded = (p.tokens + kTileKeys - 1ll) / kTileKeys * kTileKeys;
  BROACH_UNROLL
  for (unsigned i = thread.index(); i < kTileKeys * kHeadDim / 16; i += kAttentionThreads) {
    const long long key = static_cast<long long>(tile) * kTileKeys + i / 8;
    Bytes16 bytes = {};
    if (key < p.tokens) bytes = load16(p.k + (key * p.heads + head) * kHeadDim + i % 8 * 16);
    store16(&shared.k[i / 8 * kKStride + i % 8 * 16], bytes);
    const unsigned d = i / 4;
    const Bytes16 values = load16(p.v + (static_cast<long long>(d) * p.heads + head) * padded +
                                  static_cast<long long>(tile) * kTileKeys + i % 4 * 16);
    store16(&shared.v[d * kVStride + i % 4 * 16], values);
  }
}

/// Scores of the warp's 16 rows with a tile's keys.
BROACH_DEVICE void score_tile(Thread thread, const unsigned (&q)[kScoreSteps][4],
                              const AttentionShared& shared, int (&scores)[kKeyBlocks][4]) {
  const unsigned g = thread.lane() / 4;
  const unsigned t = thread.lane() % 4;
  BROACH_UNROLL
  for (int j = 0; j < kKeyBlocks; ++j) {
    BROACH_UNROLL
    for (int i = 0; i < 4; ++i) scores[j][i] = 0;
  }
  BROACH_STEPS
  for (int step = 0; step < kScoreSteps; ++step) {
    unsigned b[kKeyBlocks][2];
    BROACH_UNROLL
    for (unsigned j = 0; j < kKeyBlocks; ++j) {
      const unsigned char* const at =
          &shared.k[(8 * j + g) * kKStride + static_cast<unsigned>(step) * 32 + 4 * t];
      b[j][0] = word_at(at);
      b[j][1] = word_at(at + 16);
    }
    mma_m16n8k32_s8(thread, scores, q[step], b);
  }
}

/// E4M3(p) of a step's 32 keys, as its left operand.
BROACH_DEVICE void narrow_step(const float (&p)[kKeyBlocks][4], unsigned s, unsigned (&a)[4]) {
  BROACH_UNROLL
  for (unsigned word = 0; word < 4; ++word) {
    const unsigned low = 4 * s + word / 2 * 2;  // the 16 keys' first block
    const unsigned row = word % 2 * 2;
    const unsigned first = e4m3_pair(p[low][row], p[low][row + 1]);
    const unsigned second = e4m3_pair(p[low + 1][row], p[low + 1][row + 1]);
    a[word] = kControl == Control::kPvOrderSwapped ? second | first << 16 : first | second << 16;
  }
}

/// The left operands of a tile's steps. Beside a model all are made at once, so that P's registers
/// are free; an instruction's are made at its step.
#if defined(BROACH_HIP)
struct LeftOperands {
  unsigned words[kPvSteps][4];

  BROACH_DEVICE explicit LeftOperands(const float (&p)[kKeyBlocks][4]) {
    BROACH_STEPS
    for (unsigned s = 0; s < kPvSteps; ++s) narrow_step(p, s, words[s]);
  }
  BROACH_DEVICE void step(unsigned s, unsigned (&a)[4]) const {
    BROACH_UNROLL
    for (unsigned word = 0; word < 4; ++word) a[word] = words[s][word];
  }
};
#else
struct LeftOperands {
  const float (&p)[kKeyBlocks][4];

  BROACH_DEVICE explicit LeftOperands(const float (&of_tile)[kKeyBlocks][4]) : p(of_tile) {}
  BROACH_DEVICE void step(unsigned s, unsigned (&a)[4]) const { narrow_step(p, s, a); }
};
#endif

/// x = E4M3(p) v of a tile, of the blocks of dims from `first` on.
BROACH_DEVICE void multiply_tile(Thread thread, const LeftOperands& left,
                                 const AttentionShared& shared, int first,
                                 unsigned (&x)[kPvBlocks][2]) {
  const unsigned g = thread.lane() / 4;
  const unsigned t = thread.lane() % 4;
  BROACH_UNROLL
  for (int i = 0; i < kPvBlocks; ++i) x[i][0] = x[i][1] = 0;
  BROACH_STEPS
  for (unsigned s = 0; s < kPvSteps; ++s) {
    unsigned a[4];
    left.step(s, a);
    unsigned b[kPvBlocks][2];
    BROACH_UNROLL
    for (unsigned i = 0; i < kPvBlocks; ++i) {
      const unsigned block = static_cast<unsigned>(first) + i;
      const unsigned char* const at = &shared.v[(8 * block + g) * kVStride + 32 * s + 4 * t];
      BROACH_UNROLL
      for (unsigned word = 0; word < 2; ++word) {
        const unsigned bytes = word_at(at + 16 * word);
        b[i][word] = kControl == Control::kPvOrderSwapped ? bytes >> 16 | bytes << 16 : bytes;
      }
    }
    mma_m16n8k32_e4m3(thread, x, a, b);
  }
}

BROACH_DEVICE float rescale(float o, float a, float x) {
  if constexpr (kControl == Control::kRescaleUnfused) return add_ftz(mul_ftz(o, a), x);
  return fma_ftz(o, a, x);
}

}  // namespace broach::sage_exact

BROACH_GLOBAL(broach_sage_exact_attention, broach::sage_exact::kAttentionThreads,
              BroachSageExactAttention, broach::sage_exact::AttentionShared) {
  using namespace broach;
  using namespace broach::sage_exact;
  const unsigned head = thread.block_y();
  const unsigned g = thread.lane() / 4;
  const unsigned t = thread.lane() % 4;
  const int row = static_cast<int>(thread.block_x() * kBlockRows + thread.warp() * 16 + g);
  const int tiles = (params.tokens + kTileKeys - 1) / kTileKeys;
  const int groups = (params.tokens + kQueryBlock - 1) / kQueryBlock * (kQueryBlock / kQueryGroup);
  unsigned q[kScoreSteps][4];
  BROACH_UNROLL
  for (int step = 0; step < kScoreSteps; ++step) {
    BROACH_UNROLL
    for (int word = 0; word < 4; ++word) {
      const int at = row + word % 2 * 8;
      q[step][word] =
          at < params.tokens
              ? word_at(params.q + (static_cast<long long>(at) * params.heads + head) * kHeadDim +
                        step * 32 + word / 2 * 16 + 4 * t)
              : 0;
    }
  }
  const float q_scale = params.q_scale[static_cast<long long>(head) * groups + row / kQueryGroup];
  Rows rows;
  start_rows(rows);
  float o[kDimBlocks][4] = {};
  for (int tile = 0; tile < tiles; ++tile) {
    sync_block(thread);
    load_tile(thread, params, tile, shared);
    sync_block(thread);
    int scores[kKeyBlocks][4];
    score_tile(thread, q, shared, scores);
    const TileScale scale = scale_of_tile(
        q_scale, params.k_scale[static_cast<long long>(head) * tiles + tile], tile, tiles);
    float p[kKeyBlocks][4];
    float a[2];
    bring_tile(thread, scores, scale, params.tokens - tile * kTileKeys, rows, p, a);
    const LeftOperands left(p);
    BROACH_STEPS
    for (int first = 0; first < kDimBlocks; first += kPvBlocks) {
      unsigned x[kPvBlocks][2];
      multiply_tile(thread, left, shared, first, x);
      BROACH_UNROLL
      for (int i = 0; i < kPvBlocks; ++i) {
        float(&block)[4] = o[first + i];
        BROACH_UNROLL
        for (int half = 0; half < 2; ++half) {
          block[2 * half] = rescale(block[2 * half], a[half], low_f16(x[i][half]));
          block[2 * half + 1] = rescale(block[2 * half + 1], a[half], high_f16(x[i][half]));
        }
      }
    }
  }
  sum_of_quad(thread, rows.d);
  BROACH_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int at = row + 8 * half;
    if (at >= params.tokens) continue;
    const float inverse = rcp_approx(rows.d[half]);
    unsigned short* const out =
        params.out + at * params.out_row_stride + head * params.out_head_stride + 2 * t;
    const float* const v_scale = params.v_scale + head * kHeadDim + 2 * t;
    BROACH_STEPS
    for (int i = 0; i < kDimBlocks; ++i) {
      BROACH_UNROLL
      for (int of_pair = 0; of_pair < 2; ++of_pair) {
        const float value = mul_ftz(o[i][2 * half + of_pair], inverse);
        out[8 * i + of_pair] = narrow<Half::kBf16>(mul_ftz(value, v_scale[8 * i + of_pair]));
      }
    }
    const long long entry = static_cast<long long>(head) * params.tokens + at;
    if (t == 0 && params.softmax_max != nullptr) params.softmax_max[entry] = rows.m[half];
    if (t == 0 && params.softmax_sum != nullptr) params.softmax_sum[entry] = rows.d[half];
  }
}
