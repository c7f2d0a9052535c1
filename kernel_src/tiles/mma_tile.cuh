#pragma once

// A 16 x 16 tile of matrix multiplication, c[16 x 16] += a[16 x 16] b[16 x 16], by what a chip's
// matrix unit has: 16-bit inputs, fp32 accumulators.
//
//   NVIDIA, sm_80 and later, and the host: two mma.sync.m16n8k16 side by side (tiles/mma.cuh)
//   gfx11:                                 wmma 16x16x16, 32 lanes
//   gfx90a, gfx942, gfx950:                mfma 16x16x16, 64 lanes
//
// kTileLanes consecutive threads hold a tile. Lane l's accumulator e is the tile's element
// (tile_row(l, e), tile_column(l, e)); nothing else of a fragment's layout shows. An output element
// is computed from its row of a, its column of b and its own accumulator.
//
// Shapes: operands come from shared memory, 16-bit, rows `stride` elements apart that start 16-byte
// aligned. `a` is [m][k] (or [k][m], transposed), `b` is [n][k].

#include "common/half.cuh"
#include "common/load.cuh"
#include "common/platform.cuh"
#include "common/warp.cuh"

#if defined(__gfx90a__) || defined(__gfx942__) || defined(__gfx950__)
#define BROACH_TILE_MFMA 1
#elif defined(__gfx1100__) || defined(__gfx1101__) || defined(__gfx1102__) || \
    defined(__gfx1103__) || defined(__gfx1150__) || defined(__gfx1151__) ||   \
    defined(__gfx1152__) || defined(__gfx1153__)
#define BROACH_TILE_WMMA 1
#elif defined(BROACH_HIP) && defined(__HIP_DEVICE_COMPILE__)
#error "mma_tile.cuh has no form for this chip"
#endif

#if !defined(BROACH_HIP)
#include "tiles/fragments.cuh"
#include "tiles/mma.cuh"
#endif

namespace broach {

#if !defined(BROACH_HIP)

constexpr int kTileLanes = 32;
constexpr int kTileElems = 8;
/// A step whose products are all zero leaves its accumulators' bits alone.
constexpr bool kZeroStepsKeepBits = true;

struct TileA {
  unsigned words[4];
};
struct TileB {
  unsigned words[4];  // columns 0 .. 7, then 8 .. 15
};

BROACH_DEVICE int tile_lane(Thread thread) { return static_cast<int>(thread.lane()); }
BROACH_DEVICE int tile_row(int lane, int e) { return lane / 4 + e / 2 % 2 * 8; }
BROACH_DEVICE int tile_column(int lane, int e) { return e / 4 * 8 + lane % 4 * 2 + e % 2; }

BROACH_DEVICE void tile_load_a(Thread thread, TileA& a, const unsigned short* at, unsigned stride) {
  load_a(thread, a.words, at, stride);
}
BROACH_DEVICE void tile_load_a_transposed(Thread thread, TileA& a, const unsigned short* at,
                                          unsigned stride) {
  load_a_transposed(thread, a.words, at, stride);
}
BROACH_DEVICE void tile_load_b(Thread thread, TileB& b, const unsigned short* at, unsigned stride) {
  load_b_two_blocks(thread, b.words, at, stride);
}

template <Half kHalf>
BROACH_DEVICE void tile_mma(Thread thread, float (&c)[kTileElems], const TileA& a, const TileB& b) {
  BROACH_UNROLL
  for (int block = 0; block < 2; ++block) {
    float part[4] = {c[block * 4], c[block * 4 + 1], c[block * 4 + 2], c[block * 4 + 3]};
    const unsigned columns[2] = {b.words[block * 2], b.words[block * 2 + 1]};
    mma_m16n8k16<kHalf>(thread, part, a.words, columns);
    BROACH_UNROLL
    for (int e = 0; e < 4; ++e) c[block * 4 + e] = part[e];
  }
}

#else

#if defined(BROACH_TILE_MFMA)
constexpr int kTileLanes = 64;
constexpr int kTileElems = 4;
constexpr int kTileDepth = 4;  // Values of k a lane holds, from 4 (l / 16) on.
#else
constexpr int kTileLanes = 32;
constexpr int kTileElems = 8;
constexpr int kTileDepth = 16;
#endif
/// No promise of these instructions' arithmetic is used.
constexpr bool kZeroStepsKeepBits = false;

struct TileA {
  unsigned words[kTileDepth / 2];
};
using TileB = TileA;

BROACH_DEVICE int tile_lane(Thread thread) { return static_cast<int>(thread.index()) % kTileLanes; }
BROACH_DEVICE int tile_row([[maybe_unused]] int lane, int e) {
#if defined(BROACH_TILE_MFMA)
  return lane / 16 * 4 + e;
#else
  return 2 * e + lane / 16;
#endif
}
BROACH_DEVICE int tile_column(int lane, int /*e*/) { return lane % 16; }

/// First k that a lane holds.
BROACH_DEVICE int tile_depth(int lane) { return kTileDepth == 16 ? 0 : lane / 16 * kTileDepth; }

BROACH_DEVICE void tile_load_a(Thread thread, TileA& a, const unsigned short* at, unsigned stride) {
  const int lane = tile_lane(thread);
  __builtin_memcpy(a.words, at + lane % 16 * static_cast<int>(stride) + tile_depth(lane),
                   sizeof(a.words));
}
BROACH_DEVICE void tile_load_a_transposed(Thread thread, TileA& a, const unsigned short* at,
                                          unsigned stride) {
  const int lane = tile_lane(thread);
  const unsigned short* const from = at + tile_depth(lane) * static_cast<int>(stride) + lane % 16;
  BROACH_UNROLL
  for (int k = 0; k < kTileDepth / 2; ++k) {
    a.words[k] = from[2 * k * static_cast<int>(stride)] |
                 static_cast<unsigned>(from[(2 * k + 1) * static_cast<int>(stride)]) << 16;
  }
}
BROACH_DEVICE void tile_load_b(Thread thread, TileB& b, const unsigned short* at, unsigned stride) {
  tile_load_a(thread, b, at, stride);
}

template <Half kHalf>
BROACH_DEVICE void tile_mma(Thread /*thread*/, float (&c)[kTileElems], const TileA& a,
                            const TileB& b) {
#if defined(BROACH_TILE_MFMA) || defined(BROACH_TILE_WMMA)
  typedef float Sums __attribute__((ext_vector_type(kTileElems)));
  typedef short Shorts __attribute__((ext_vector_type(kTileDepth)));
  typedef _Float16 Halfs __attribute__((ext_vector_type(kTileDepth)));
  Sums sums;
  __builtin_memcpy(&sums, c, sizeof(sums));
  if constexpr (kHalf == Half::kBf16) {
    Shorts x;
    Shorts y;
    __builtin_memcpy(&x, a.words, sizeof(x));
    __builtin_memcpy(&y, b.words, sizeof(y));
#if defined(BROACH_TILE_MFMA)
    sums = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(x, y, sums, 0, 0, 0);
#else
    sums = __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(x, y, sums);
#endif
  } else {
    Halfs x;
    Halfs y;
    __builtin_memcpy(&x, a.words, sizeof(x));
    __builtin_memcpy(&y, b.words, sizeof(y));
#if defined(BROACH_TILE_MFMA)
    sums = __builtin_amdgcn_mfma_f32_16x16x16f16(x, y, sums, 0, 0, 0);
#else
    sums = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(x, y, sums);
#endif
  }
  __builtin_memcpy(c, &sums, sizeof(sums));
#endif
}

#endif

}  // namespace broach
