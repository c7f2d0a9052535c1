#pragma once

// Boundary 3: v as E4M3 with one scale a channel (head and dim), transposed for P x V.
//
//   M = max(-1e6, v ...), m = min(1e6, v ...) over tokens below ceil16(N), those from N on zero;
//   a NaN takes no part.  amax = max(|M|, |m|)
//   scale = amax * rcp~(2.25)        out[d, h, p] = e4m3(v * (rcp~(amax) * 2.25))
//
// Position p holds token 16 (p / 16) + token_of_position(p % 16); tokens from N to the padded
// length are zeros, which an all-zero channel turns into NaN like the others.
//
// broach_sage_exact_v_range: block 256 threads, 16 a token, 8 dims each; grid = (chunks, H).
// broach_sage_exact_v_scale: block 128 threads, one a dim; grid = (H).
// broach_sage_exact_v_fp8: block 256 threads, 64 tokens of a head; grid = (T, H). Chips: any.

#include "common/load.cuh"
#include "sage_exact/arith.cuh"
#include "sage_exact/params.h"

namespace broach::sage_exact {

constexpr int kFp8Threads = 256;
constexpr int kTokenThreads = kHeadDim / 8;
constexpr int kPassTokens = kFp8Threads / kTokenThreads;

struct RangeShared {
  float most[kPassTokens][kHeadDim];
  float least[kPassTokens][kHeadDim];
};

struct Fp8Shared {
  // An odd number of 4-byte units a row: a dim's tokens and a token's dims are free of conflicts.
  unsigned short v[kTileKeys][kHeadDim + 2];
};

/// Inverse of a channel's scale.
BROACH_DEVICE float inverse_of(float amax) { return divide(kFp8Max, amax); }

}  // namespace broach::sage_exact

BROACH_GLOBAL(broach_sage_exact_v_range, broach::sage_exact::kFp8Threads, BroachSageExactFp8,
              broach::sage_exact::RangeShared) {
  using namespace broach;
  using namespace broach::sage_exact;
  const unsigned head = thread.block_y();
  const unsigned dims = thread.index() % kTokenThreads * 8;
  const unsigned of_pass = thread.index() / kTokenThreads;
  const unsigned short* const v = params.v + head * params.head_stride + dims;
  const long long begin = static_cast<long long>(thread.block_x()) * params.chunk_tokens;
  const long long ceil16 = (params.tokens + 15ll) / 16 * 16;
  const long long end = begin + params.chunk_tokens < ceil16 ? begin + params.chunk_tokens : ceil16;
  float most[8];
  float least[8];
  BROACH_UNROLL
  for (int i = 0; i < 8; ++i) {
    most[i] = -widest_v();
    least[i] = widest_v();
  }
  constexpr int kAhead = 4;
  for (long long token = begin + of_pass; token < end; token += kAhead * kPassTokens) {
    Halves8 loaded[kAhead] = {};
    BROACH_UNROLL
    for (int j = 0; j < kAhead; ++j) {
      const long long at = token + j * kPassTokens;
      if (at < params.tokens) loaded[j] = load8(v + at * params.row_stride);
    }
    BROACH_UNROLL
    for (int j = 0; j < kAhead; ++j) {
      if (token + j * kPassTokens >= end) continue;
      BROACH_UNROLL
      for (int i = 0; i < 8; ++i) {
        const float value = widen<Half::kBf16>(loaded[j], static_cast<unsigned>(i));
        most[i] = max_ftz(most[i], value);
        least[i] = min_ftz(least[i], value);
      }
    }
  }
  BROACH_UNROLL
  for (int i = 0; i < 8; ++i) {
    shared.most[of_pass][dims + static_cast<unsigned>(i)] = most[i];
    shared.least[of_pass][dims + static_cast<unsigned>(i)] = least[i];
  }
  sync_block(thread);
  const unsigned d = thread.index() % kHeadDim;
  const bool of_most = thread.index() < kHeadDim;
  float result = of_most ? -widest_v() : widest_v();
  for (int pass = 0; pass < kPassTokens; ++pass) {
    result =
        of_most ? max_ftz(result, shared.most[pass][d]) : min_ftz(result, shared.least[pass][d]);
  }
  params.range[((static_cast<long long>(head) * params.chunks + thread.block_x()) * 2 +
                (of_most ? 0 : 1)) *
                   kHeadDim +
               d] = result;
}

BROACH_GLOBAL(broach_sage_exact_v_scale, 128, BroachSageExactFp8, broach::NoShared) {
  using namespace broach;
  using namespace broach::sage_exact;
  const unsigned head = thread.block_x();
  const unsigned d = thread.index();
  float* const range = params.range + static_cast<long long>(head) * params.chunks * 2 * kHeadDim;
  float most = -widest_v();
  float least = widest_v();
  for (int chunk = 0; chunk < params.chunks; ++chunk) {
    most = max_ftz(most, range[chunk * 2 * kHeadDim + static_cast<int>(d)]);
    least = min_ftz(least, range[(chunk * 2 + 1) * kHeadDim + static_cast<int>(d)]);
  }
  const float amax = max_ftz(magnitude_of(most), magnitude_of(least));
  params.scale[head * kHeadDim + d] = divide(amax, kFp8Max);
  range[d] = inverse_of(amax);  // What the conversion multiplies by.
}

BROACH_GLOBAL(broach_sage_exact_v_fp8, broach::sage_exact::kFp8Threads, BroachSageExactFp8,
              broach::sage_exact::Fp8Shared) {
  using namespace broach;
  using namespace broach::sage_exact;
  const unsigned tile = thread.block_x();
  const unsigned head = thread.block_y();
  const unsigned dims = thread.index() % kTokenThreads * 8;
  const unsigned short* const v = params.v + head * params.head_stride + dims;
  Halves8 loaded[kTileKeys / kPassTokens] = {};
  BROACH_UNROLL
  for (int pass = 0; pass < kTileKeys / kPassTokens; ++pass) {
    const long long token = static_cast<long long>(tile) * kTileKeys + pass * kPassTokens +
                            static_cast<long long>(thread.index() / kTokenThreads);
    if (token < params.tokens) loaded[pass] = load8(v + token * params.row_stride);
  }
  BROACH_UNROLL
  for (int pass = 0; pass < kTileKeys / kPassTokens; ++pass) {
    unsigned short* const row =
        &shared.v[pass * kPassTokens + static_cast<int>(thread.index() / kTokenThreads)][dims];
    BROACH_UNROLL
    for (int i = 0; i < 4; ++i) {
#if defined(BROACH_HOST)
      __builtin_memcpy(row + 2 * i, &loaded[pass].words[i], 4);
#else
      *reinterpret_cast<unsigned*>(row + 2 * i) = loaded[pass].words[i];
#endif
    }
  }
  sync_block(thread);
  const float* const inverses =
      params.range + static_cast<long long>(head) * params.chunks * 2 * kHeadDim;
  const long long padded = (params.tokens + kTileKeys - 1ll) / kTileKeys * kTileKeys;
  // A thread converts 16 positions of two dims: 4 threads a dim and 64 positions.
  const unsigned group = thread.index() % 4;
  BROACH_UNROLL
  for (unsigned half = 0; half < 2; ++half) {
    const unsigned d = thread.index() / 4 + half * (kHeadDim / 2);
    const float inverse = inverses[d];
    const long long at = (static_cast<long long>(d) * params.heads + head) * padded +
                         static_cast<long long>(tile) * kTileKeys + group * 16;
    unsigned words[4] = {};
    BROACH_UNROLL
    for (int i = 0; i < 16; ++i) {
      const unsigned short value = shared.v[group * 16 + token_of_position(i)][d];
      if (params.transposed != nullptr) params.transposed[at + i] = value;
      words[i / 4] |= (e4m3_pair(mul_ftz(bf16_of(value), inverse), 0.0f) & 0xffu) << i % 4 * 8;
    }
#if defined(BROACH_CUDA)
    *reinterpret_cast<uint4*>(params.out + at) = make_uint4(words[0], words[1], words[2], words[3]);
#else
    __builtin_memcpy(params.out + at, words, sizeof(words));
#endif
  }
}
