#pragma once

// Key tiles as attention_warpgroup.cuh reads them: one contiguous run of bytes a head and tile,
// laid out for wgmma, so that one bulk copy brings a tile.
//
//   K [64 keys][128 bytes], V [128 dims][64 f16]; rows of 128 bytes in 128-byte swizzle
//   (tiles/swizzle.cuh).
//
// V's columns are in the order of P x V's steps: step i = 2 s + high of 16 columns holds of the 32
// positions from 32 s on those with position % 4 / 2 == high, ascending. E4M3 is unpacked to f16,
// which is exact. Block: 256 threads; grid = (T, H).

#include "sage_exact/params.h"
#include "sage_exact/softmax.cuh"

namespace broach::sage_exact {

constexpr int kPackThreads = 256;
constexpr int kRowBytes = 128;
constexpr int kPackedKBytes = kTileKeys * kRowBytes;
constexpr int kPackedVBytes = kHeadDim * kRowBytes;
constexpr int kPackedBytes = kPackedKBytes + kPackedVBytes;

/// Where unit `unit` of a row lies, in bytes.
BROACH_DEVICE constexpr int unit_at(int row, int unit) {
  return row * kRowBytes + (unit ^ row % 8) * 16;
}

/// Where a head's tile begins.
BROACH_DEVICE unsigned char* packed_tile(const BroachSageExactAttention& p, unsigned head, int tile,
                                         int tiles) {
  return static_cast<unsigned char*>(p.tiles) +
         (static_cast<long long>(head) * tiles + tile) * kPackedBytes;
}

}  // namespace broach::sage_exact

#if defined(BROACH_CUDA)

BROACH_GLOBAL(broach_sage_exact_pack, broach::sage_exact::kPackThreads, BroachSageExactAttention,
              broach::NoShared) {
  using namespace broach;
  using namespace broach::sage_exact;
  const int tile = static_cast<int>(thread.block_x());
  const unsigned head = thread.block_y();
  const int tiles = static_cast<int>(thread.grid_x());
  unsigned char* const out = packed_tile(params, head, tile, tiles);
  uint4 keys[2];
  uint4 values[2];
  BROACH_UNROLL
  for (int i = 0; i < 2; ++i) {
    const int at = static_cast<int>(thread.index()) + i * kPackThreads;
    const long long key = static_cast<long long>(tile) * kTileKeys + at / 8;
    keys[i] = make_uint4(0, 0, 0, 0);
    if (key < params.tokens) {
      keys[i] = __ldg(reinterpret_cast<const uint4*>(
          params.k + (key * params.heads + head) * kHeadDim + at % 8 * 16));
    }
    values[i] = __ldg(reinterpret_cast<const uint4*>(
        params.v +
        ((static_cast<long long>(at / 4) * params.heads + head) * tiles + tile) * kTileKeys +
        at % 4 * 16));
  }
  BROACH_UNROLL
  for (int i = 0; i < 2; ++i) {
    const int at = static_cast<int>(thread.index()) + i * kPackThreads;
    *reinterpret_cast<uint4*>(out + unit_at(at / 8, at % 8)) = keys[i];
    // 16 positions become a unit of a low step and a unit of the high step after it.
    const int d = at / 4;
    const int unit = at % 4 / 2 * 4 + at % 2;
    const uint4 v = values[i];
    unsigned char* const of_v = out + kPackedKBytes;
    *reinterpret_cast<uint4*>(of_v + unit_at(d, unit)) = make_uint4(
        f16_pair_of_e4m3(v.x), f16_pair_of_e4m3(v.y), f16_pair_of_e4m3(v.z), f16_pair_of_e4m3(v.w));
    *reinterpret_cast<uint4*>(of_v + unit_at(d, unit + 2)) =
        make_uint4(f16_pair_of_e4m3(v.x >> 16), f16_pair_of_e4m3(v.y >> 16),
                   f16_pair_of_e4m3(v.z >> 16), f16_pair_of_e4m3(v.w >> 16));
  }
}

#endif
