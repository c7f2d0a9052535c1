#pragma once

// Boundary 4 on sm_90a: bit for bit attention.cuh, from packed tiles (packed_tiles.cuh).
//
// Block: three warpgroups of 64 query rows; grid = (ceil(N / 192), H). One thread fills a ring of
// slots by bulk copies, far ahead: step t of the ring is K of tile t and V of tile t - 1. A
// producer warpgroup of its own would leave the others 160 registers; so they have 168. A
// warpgroup, for each tile t:
//
//   issue P x V of tile t, dims 0 .. 63, and half of q k^T of tile t + 1; rescale those dims
//   issue P x V of tile t, dims 64 .. 127, and the other half;              rescale those dims
//   softmax of tile t + 1
//
// Nothing is in flight over the loop's end. What is free to differ from attention.cuh: the order of
// the integer sums, and that a tile's maximum is taken over integers before the one fma, which is
// monotone (tiles before the last two).

#include "sage_exact/packed_tiles.cuh"
#include "tiles/bulk_copy.cuh"
#include "tiles/mma_f16.cuh"
#include "tiles/wgmma_narrow.cuh"

namespace broach::sage_exact {

constexpr int kGroups = 3;
constexpr int kWarpgroupThreads = 128;
constexpr int kFastThreads = kGroups * kWarpgroupThreads;
constexpr int kGroupRows = 64;
constexpr int kFastRows = kGroups * kGroupRows;
constexpr unsigned kSlots = 8;
// Steps prefetched. The slot of step t + kAhead was step t - 2's: warpgroups may be two apart
// before the one that prefetches has to wait.
constexpr unsigned kAhead = kSlots - 2;
constexpr int kQBytes = kGroupRows * kRowBytes;
constexpr int kQueryBlock = 128;

struct alignas(1024) FastShared {
  unsigned char q[kGroups][kQBytes];
  struct Slot {
    unsigned char v[kPackedVBytes];
    unsigned char k[kPackedKBytes];
  } slots[kSlots];
  Barrier full[kSlots];
  Barrier empty[kSlots];
};
static_assert(sizeof(FastShared) == kFastSharedBytes, "the renderer states the same size");

#if defined(BROACH_CUDA)

extern __shared__ __attribute__((aligned(1024))) unsigned char broach_sage_exact_shared[];

/// Where step `i` of the ring lies: its slot, and the phase of the slot's barriers.
BROACH_DEVICE constexpr unsigned slot_of(unsigned i) { return i % kSlots; }
BROACH_DEVICE constexpr unsigned phase_of(unsigned i) { return i / kSlots % 2; }

/// Copies step `i` of the ring in, once every warp is done with what its slot held. One thread's.
BROACH_DEVICE void prefetch(const BroachSageExactAttention& p, FastShared& shared, unsigned head,
                            unsigned i, unsigned tiles) {
  if (i > tiles) return;
  if (i >= kSlots) barrier_wait(shared.empty[slot_of(i)], phase_of(i) ^ 1);
  FastShared::Slot& slot = shared.slots[slot_of(i)];
  Barrier& full = shared.full[slot_of(i)];
  // V of tile i - 1 and K of tile i lie side by side, here and there.
  const unsigned begin = i > 0 ? 0 : kPackedVBytes;
  const unsigned end = i < tiles ? sizeof slot : kPackedVBytes;
  const unsigned char* const from =
      packed_tile(p, head, static_cast<int>(i), static_cast<int>(tiles)) - kPackedVBytes;
  barrier_arrive_expecting(full, end - begin);
  bulk_copy(slot.v + begin, from + begin, end - begin, full);
}

/// Where the thread stands, read anew: a compiler that knows the value keeps a register for it over
/// the whole loop.
struct Standing {
  unsigned thread, block, head;
};
BROACH_DEVICE Standing read_standing() {
  Standing standing;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(standing.thread));
  asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(standing.block));
  asm volatile("mov.u32 %0, %%ctaid.y;" : "=r"(standing.head));
  return standing;
}

/// The first row of a thread's warp.
BROACH_DEVICE int warp_row_of(const Standing& standing) {
  return static_cast<int>(standing.block * kFastRows + standing.thread / kWarpLanes * 16);
}

/// The probabilities of a tile as operands of its four steps.
struct Operands {
  unsigned a[4][4];
};

/// E4M3 and back: a pair of f16.
BROACH_DEVICE unsigned rounded_pair(float low, float high) {
  return f16_pair_of_e4m3(e4m3_pair(low, high));
}

BROACH_DEVICE void pack_operands(const float (&p)[kKeyBlocks][4], Operands& operands) {
  BROACH_UNROLL
  for (int j = 0; j < kKeyBlocks; ++j) {
    // Block j = 4 s + 2 (second group of 16) + high.
    const int step = j / 4 * 2 + j % 2;
    const int word = j % 4 / 2 * 2;
    operands.a[step][word] = rounded_pair(p[j][0], p[j][1]);
    operands.a[step][word + 1] = rounded_pair(p[j][2], p[j][3]);
  }
}

BROACH_DEVICE int max3(int a, int b, int c) { return max(max(a, b), c); }

/// bring_tile for tiles before the last two.
BROACH_DEVICE void bring_regular_tile(Thread thread, const int (&scores)[kKeyBlocks][4], float sc,
                                      Rows& rows, Operands& operands, float (&a)[2]) {
  int most[2];
  BROACH_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int h = 2 * half;
    int value = max(scores[0][h], scores[0][h + 1]);
    BROACH_UNROLL
    for (int j = 1; j < kKeyBlocks; ++j) value = max3(value, scores[j][h], scores[j][h + 1]);
    most[half] = value;
  }
  BROACH_UNROLL
  for (unsigned mask = 1; mask < 4; mask *= 2) {
    BROACH_UNROLL
    for (int half = 0; half < 2; ++half) {
      most[half] = max(most[half], shuffle_xor(thread, most[half], mask));
    }
  }
  float negated[2];
  BROACH_UNROLL
  for (int half = 0; half < 2; ++half) {
    const float before = rows.m[half];
    const float of_tile = fma_ftz(static_cast<float>(most[half]), sc, max_offset());
    rows.m[half] = max_ftz(before, of_tile);
    a[half] = ex2_approx(sub_ftz(before, rows.m[half]));
    negated[half] = -rows.m[half];
  }
  BROACH_UNROLL
  for (int f = 0; f < kKeyBlocks / 2; ++f) {
    BROACH_UNROLL
    for (int half = 0; half < 2; ++half) {
      float p[4];
      BROACH_UNROLL
      for (int i = 0; i < 4; ++i) {
        const auto y = static_cast<float>(scores[2 * f + i / 2][2 * half + i % 2]);
        p[i] = ex2_approx(fma_ftz(y, sc, negated[half]));
      }
      const float sum = add_ftz(add_ftz(add_ftz(p[0], p[1]), p[2]), p[3]);
      if (f > 0) {
        rows.d[half] = add_ftz(rows.d[half], sum);
      } else if constexpr (kControl == Control::kRescaleUnfused) {
        rows.d[half] = add_ftz(mul_ftz(rows.d[half], a[half]), sum);
      } else {
        rows.d[half] = fma_ftz(rows.d[half], a[half], sum);
      }
      operands.a[f / 2 * 2][f % 2 * 2 + half] = rounded_pair(p[0], p[1]);
      operands.a[f / 2 * 2 + 1][f % 2 * 2 + half] = rounded_pair(p[2], p[3]);
    }
  }
}

/// A part of P x V: 64 dims of the warpgroup's rows, the two 32-key halves of a tile apart.
struct Product {
  unsigned x[2][8][2];
};

/// Begins 64 dims of P x V; `v` describes their rows.
BROACH_DEVICE void begin_product(const Operands& operands, unsigned long long v, Product& product) {
  wgmma_fence();
  BROACH_UNROLL
  for (int s = 0; s < 2; ++s) {
    BROACH_UNROLL
    for (int i = 0; i < 2; ++i) {
      const int step = 2 * s + (kControl == Control::kPvOrderSwapped ? 1 - i : i);
      wgmma_m64n64k16_f16(product.x[s], operands.a[step], v + step * kThirtyTwoBytes, i > 0);
    }
  }
  wgmma_commit();
}

/// Begins half of a tile's scores; `k` and `q` describe their tiles.
BROACH_DEVICE void begin_scores(unsigned long long q, unsigned long long k, int half,
                                int (&scores)[kKeyBlocks][4]) {
  wgmma_fence();
  BROACH_UNROLL
  for (int i = 0; i < 2; ++i) {
    const int step = 2 * half + i;
    wgmma_m64n64k32_s8(scores, q + step * kThirtyTwoBytes, k + step * kThirtyTwoBytes, step > 0);
  }
  wgmma_commit();
}

/// Brings a product into 64 dims of the output.
BROACH_DEVICE void rescale_part(Product& product, const float (&a)[2], float (&o)[8][4]) {
  wgmma_fence_accumulators(product.x[0]);
  wgmma_fence_accumulators(product.x[1]);
  BROACH_UNROLL
  for (int i = 0; i < 8; ++i) {
    BROACH_UNROLL
    for (int half = 0; half < 2; ++half) {
      const unsigned x = add_f16_pair(product.x[1][i][half], product.x[0][i][half]);
      if constexpr (kControl == Control::kRescaleUnfused) {
        o[i][2 * half] = add_ftz(mul_ftz(o[i][2 * half], a[half]), low_f16(x));
        o[i][2 * half + 1] = add_ftz(mul_ftz(o[i][2 * half + 1], a[half]), high_f16(x));
      } else {
        o[i][2 * half] = fma_ftz(o[i][2 * half], a[half], low_f16(x));
        o[i][2 * half + 1] = fma_ftz(o[i][2 * half + 1], a[half], high_f16(x));
      }
    }
  }
}

/// The warpgroup's rows of q, as a tile.
BROACH_DEVICE void load_queries(Thread thread, const BroachSageExactAttention& p,
                                unsigned char* q) {
  const unsigned head = thread.block_y();
  const int first_row = static_cast<int>(thread.block_x() * kFastRows +
                                         thread.index() / kWarpgroupThreads * kGroupRows);
  BROACH_UNROLL
  for (int i = 0; i < kQBytes / 16 / kWarpgroupThreads; ++i) {
    const int at = static_cast<int>(thread.index() % kWarpgroupThreads) + i * kWarpgroupThreads;
    const int row = first_row + at / 8;
    uint4 bytes = make_uint4(0, 0, 0, 0);
    if (row < p.tokens) {
      bytes = __ldg(reinterpret_cast<const uint4*>(
          p.q + (static_cast<long long>(row) * p.heads + head) * kHeadDim + at % 8 * 16));
    }
    *reinterpret_cast<uint4*>(q + unit_at(at / 8, at % 8)) = bytes;
  }
}

/// Divides by the denominator and stores the lane's part of two rows.
BROACH_DEVICE void store_rows(Thread thread, const BroachSageExactAttention& p, Rows& rows,
                              const float (&o)[2][8][4]) {
  sum_of_quad(thread, rows.d);
  const Standing standing = read_standing();
  const unsigned head = standing.head;
  const unsigned t = standing.thread % 4;
  const int row = warp_row_of(standing) + static_cast<int>(standing.thread % kWarpLanes / 4);
  const float* const v_scale = p.v_scale + head * kHeadDim + 2 * t;
  BROACH_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int at = row + 8 * half;
    if (at >= p.tokens) continue;
    const float inverse = rcp_approx(rows.d[half]);
    unsigned short* const out = p.out + at * p.out_row_stride + head * p.out_head_stride + 2 * t;
    BROACH_UNROLL
    for (int part = 0; part < 2; ++part) {
      BROACH_UNROLL
      for (int i = 0; i < 8; ++i) {
        const int d = part * 64 + 8 * i;
        const float2 scale = __ldg(reinterpret_cast<const float2*>(v_scale + d));
        const float low = mul_ftz(mul_ftz(o[part][i][2 * half], inverse), scale.x);
        const float high = mul_ftz(mul_ftz(o[part][i][2 * half + 1], inverse), scale.y);
        *reinterpret_cast<unsigned*>(out + d) = narrow_pair<Half::kBf16>(low, high);
      }
    }
    const long long entry = static_cast<long long>(head) * p.tokens + at;
    if (t == 0 && p.softmax_max != nullptr) p.softmax_max[entry] = rows.m[half];
    if (t == 0 && p.softmax_sum != nullptr) p.softmax_sum[entry] = rows.d[half];
  }
}

/// What a tile's scores are multiplied by, for the thread's warp.
BROACH_DEVICE TileScale fast_scale(const BroachSageExactAttention& p, int tile, int tiles) {
  const Standing standing = read_standing();
  const int groups = (p.tokens + kQueryBlock - 1) / kQueryBlock * (kQueryBlock / kQueryGroup);
  // A warp wholly behind the last token has no group; whatever it computes is not stored.
  const int group = min(warp_row_of(standing) / kQueryGroup, groups - 1);
  const int head = static_cast<int>(standing.head);
  return scale_of_tile(__ldg(p.q_scale + head * groups + group),
                       __ldg(p.k_scale + head * tiles + tile), tile, tiles);
}

BROACH_DEVICE void attend(Thread thread, const BroachSageExactAttention& p, FastShared& shared,
                          int tiles) {
  // From one lane, so that a compiler sees what a whole warp has in common.
  const unsigned group = shuffle(thread, thread.index() / kWarpgroupThreads, 0);
  load_queries(thread, p, shared.q[group]);
  async_proxy_fence();
  sync_named(group + 1, kWarpgroupThreads);
  const auto count = static_cast<unsigned>(tiles);
  const auto* const start = reinterpret_cast<const unsigned short*>(&shared);
  const unsigned long long base = swizzle_descriptor(thread, start);
  if (thread.index() == 0) {
    BROACH_ROLLED
    for (unsigned i = 0; i <= kAhead; ++i) prefetch(p, shared, thread.block_y(), i, count);
  }
  __syncwarp();
  const unsigned long long q = base + group * (kQBytes / 16);
  constexpr unsigned long long kSlotUnits = sizeof(FastShared::Slot) / 16;
  constexpr unsigned long long kFirstSlot = sizeof(FastShared::q) / 16;
  constexpr unsigned long long kOfK = kPackedVBytes / 16;
  constexpr unsigned long long kPartUnits = kPackedVBytes / 2 / 16;

  Rows rows;
  start_rows(rows);
  float o[2][8][4] = {};
  int scores[kKeyBlocks][4];
  Operands operands;
  float a[2];
  const auto softmax = [&](int tile) {
    wgmma_fence_accumulators(scores);
    const TileScale scale = fast_scale(p, tile, tiles);
    if (scale.of_last) {
      float probabilities[kKeyBlocks][4];
      bring_tile(thread, scores, scale, p.tokens - tile * kTileKeys, rows, probabilities, a);
      pack_operands(probabilities, operands);
    } else {
      bring_regular_tile(thread, scores, scale.sc, rows, operands, a);
    }
  };
  barrier_wait(shared.full[0], 0);
  begin_scores(q, base + kFirstSlot + kOfK, 0, scores);
  begin_scores(q, base + kFirstSlot + kOfK, 1, scores);
  wgmma_wait<0>();
  if (thread.lane() == 0) barrier_arrive(shared.empty[0]);
  softmax(0);
  BROACH_ROLLED
  for (int tile = 1;; ++tile) {
    const auto at = static_cast<unsigned>(tile);
    const unsigned long long slot = base + kFirstSlot + slot_of(at) * kSlotUnits;
    barrier_wait(shared.full[slot_of(at)], phase_of(at));
    Product product;
    begin_product(operands, slot, product);
    begin_scores(q, slot + kOfK, 0, scores);
    wgmma_wait<1>();
    rescale_part(product, a, o[0]);
    begin_product(operands, slot + kPartUnits, product);
    begin_scores(q, slot + kOfK, 1, scores);
    wgmma_wait<1>();
    rescale_part(product, a, o[1]);
    wgmma_wait<0>();
    if (thread.lane() == 0) barrier_arrive(shared.empty[slot_of(at)]);
    if (tile == tiles) break;
    if (thread.index() == 0) prefetch(p, shared, read_standing().head, at + kAhead, count);
    __syncwarp();
    softmax(tile);
  }
  store_rows(thread, p, rows, o);
}

#endif

}  // namespace broach::sage_exact

#if defined(BROACH_CUDA)

BROACH_GLOBAL(broach_sage_exact_attention_warpgroup, broach::sage_exact::kFastThreads,
              BroachSageExactAttention, broach::NoShared) {
  using namespace broach;
  using namespace broach::sage_exact;
  FastShared& fast = *reinterpret_cast<FastShared*>(broach_sage_exact_shared);
  const int tiles = (params.tokens + kTileKeys - 1) / kTileKeys;
  if (thread.index() == 0) {
    BROACH_ROLLED
    for (unsigned i = 0; i < kSlots; ++i) {
      barrier_init(fast.full[i], 1);
      barrier_init(fast.empty[i], kFastThreads / kWarpLanes);
    }
    barrier_init_fence();
  }
  sync_block(thread);
  attend(thread, params, fast, tiles);
}

#endif
