#pragma once

/* Sizes that the window_rows kernels, their renderer and their launches share: tiles, threads of a
 * block, shared memory, workspace. No header is included; compiles as host and device C++.
 *
 * Keys move through shared memory in KV stages of a tile's keys x some dims, K before V. Rows are
 * padded by 16 bytes, or swizzled where warpgroups multiply (tiles/swizzle.cuh).
 */

namespace broach::window_rows {

constexpr int kTile64Keys = 64;
constexpr int kMma32Keys = 32;

/* Of a row in shared memory, in 16-bit elements: attention/kv_pipeline.cuh says why. */
constexpr int kRowPadElems = 8;

/* ---- chunk256: a chunk is cut into runs, a warp each ---- */

constexpr int kChunkKeys = 256;
constexpr int kRunKeys = 32;
constexpr int kRuns = kChunkKeys / kRunKeys;
constexpr int kChunk256PartialThreads = kRuns * 32;
constexpr int kChunk256CombineThreads = 128;

/* Offsets of the workspace between chunk256's two kernels, in floats. Partial i belongs to (row,
 * query head, the row's n-th chunk): i = (row * heads + head) * max_chunks + n.
 *
 *   values [partials][D]   sum of exp(s_j - m) v_j over the chunk's keys
 *   maxima [partials]      the chunk's largest score
 *   sums   [partials]      sum of exp(s_j - m)
 */
struct Chunk256Workspace {
  long long partials;
  long long maxima;
  long long sums;
  long long floats; /* in all */
};

constexpr Chunk256Workspace chunk256_workspace(long long rows, long long query_heads,
                                               long long max_chunks, int head_dim) {
  const long long partials = rows * query_heads * max_chunks;
  return {partials, partials * head_dim, partials * (head_dim + 1), partials * (head_dim + 2)};
}

/* ---- tile64's decode ---- */

/* Threads of a block of the combine kernel: those that combine values, and a warp for the sums. */
constexpr int kCombineValueThreads = 128;
constexpr int kCombineThreads = kCombineValueThreads + 32;

/* Dims of a KV stage: the largest divisor of head_dim up to 128 that is a multiple of 16. */
constexpr int stage_dims(int head_dim) {
  return head_dim <= 128 ? head_dim : head_dim == 192 ? 96 : 128;
}

/* Query heads of a KV head in blocks of 8 columns: 1, 2 or 4. */
constexpr int head_blocks(int gqa_ratio) { return gqa_ratio <= 8 ? 1 : gqa_ratio <= 16 ? 2 : 4; }

/* Warps of a decode block: the accumulators of head_dim x heads outputs must stay in registers. */
constexpr int decode_warps(int head_dim, int blocks) { return head_dim * blocks > 1024 ? 8 : 4; }

/* Bytes of the decode kernel's dynamic shared memory; sizeof(DecodeShared). */
constexpr int decode_shared_bytes(int head_dim, int blocks, bool p32, int stages) {
  const int heads = 8 * blocks;
  return stages * kTile64Keys * (stage_dims(head_dim) + kRowPadElems) * 2 /* KV stages */
         + heads * (head_dim + kRowPadElems) * 2                          /* queries */
         + (p32 ? 2 : 1) * heads * (kTile64Keys + kRowPadElems) * 2       /* P, 16-bit */
         + heads * (kTile64Keys + kRowPadElems) * 4                       /* P, fp32 */
         + (4 + 1 + 1) * heads * 4                                        /* maxima, sums, redo */
         + 16;                                                            /* arrival */
}

/* Offsets of the workspace of a decode that spreads a row's tiles over CTAs, in floats. A pair is a
 * (row, KV head).
 *
 *   arrivals [pairs]                     64-bit, how many of a pair's CTAs are done
 *   maxima   [pairs][max_tiles][ratio]   m_t
 *   sums     [pairs][max_tiles][ratio]   l_t
 *   values   [pairs][max_tiles][ratio][D]   pv_t
 */
struct Tile64Workspace {
  long long maxima;
  long long sums;
  long long values;
  long long floats; /* in all */
};

constexpr Tile64Workspace tile64_workspace(long long pairs, long long max_tiles, int gqa_ratio,
                                           int head_dim) {
  /* Two floats a counter; an odd number of pairs leaves 8 bytes so that values stay aligned. */
  const long long maxima = (pairs + 1) / 2 * 4;
  const long long partials = pairs * max_tiles * gqa_ratio;
  return {maxima, maxima + partials, maxima + 2 * partials,
          maxima + 2 * partials + partials * head_dim};
}

/* ---- prefill ---- */

/* Dims of an mma32 stage: with half of the keys, twice the dims take the same room. */
constexpr int mma32_stage_dims(int head_dim) { return head_dim <= 256 ? head_dim : 256; }

/* Rows of a prefill block whose warps multiply: four bands of 16. */
constexpr int kWarpPrefillRows = 64;

/* Warps of such a block: above 256 dims a band's outputs need the registers of two; a generic
 * kernel's run-time values take so many that 256 dims do as well. */
constexpr int prefill_warps(int head_dim, bool generic) {
  return head_dim > 256 || (generic && head_dim == 256) ? 8 : 4;
}

/* Bytes of its dynamic shared memory; sizeof(PrefillShared). */
constexpr int prefill_shared_bytes(int head_dim, int tile_keys, int dims_of_stage, int stages) {
  return kWarpPrefillRows * (head_dim + kRowPadElems) * 2          /* queries */
         + stages * tile_keys * (dims_of_stage + kRowPadElems) * 2 /* KV stages */
         + 2 * kWarpPrefillRows * 4                                /* last keys, redo */
         + 16;                                                     /* whether to clean values */
}

/* Whether a prefill's tiles can be multiplied by warpgroups: its dims are whole swizzled tiles. */
constexpr bool fits_warpgroups(int head_dim) { return head_dim % 64 == 0; }

/* Warpgroups of a prefill block, each with 64 rows: as many as the registers hold outputs of. Above
 * 256 dims two share 64 rows. */
constexpr int prefill_warpgroups(int head_dim) { return head_dim <= 128 ? 3 : 2; }
constexpr int warpgroup_prefill_rows(int head_dim) {
  return head_dim > 256 ? 64 : 64 * prefill_warpgroups(head_dim);
}

/* Dims of their KV stages: all, while several stages fit. */
constexpr int swizzled_stage_dims(int head_dim) { return head_dim <= 256 ? head_dim : 128; }

/* Bytes of their dynamic shared memory; sizeof(WarpgroupShared). */
constexpr int warpgroup_prefill_shared_bytes(int head_dim, int stages) {
  const int rows = warpgroup_prefill_rows(head_dim);
  return rows * head_dim * 2                                        /* queries */
         + stages * kTile64Keys * swizzled_stage_dims(head_dim) * 2 /* KV stages */
         + 2 * rows * 4                                             /* last keys, redo */
         + 16                                                       /* whether to clean values */
         + stages * 2 * 8;                                          /* barriers */
}

/* ---- prefill by a producer and consumers ---- */

/* The producer's warpgroup, of which one warp works. */
constexpr int kProducerThreads = 128;

/* Slots {K of a tile, V of the tile before it} of the ring, at most. */
constexpr int kMostSlots = 8;

/* Consumer warpgroups of a block, each with 64 rows: as many as the registers hold outputs, scores
 * and P of. */
constexpr int pipeline_consumers(int head_dim, bool p32) {
  return head_dim > 128 || (p32 && head_dim == 128) ? 2 : 3;
}

/* Keys of a tensor copy out of a ring or pages of `length`: the largest power of two that divides
 * it, a tile's keys at most. A copy of 8 is the least that swizzles like a whole tile. */
constexpr int kLeastCopyRows = 8;
constexpr int copy_rows_of(int length) {
  int rows = kTile64Keys;
  while (length % rows != 0) rows /= 2;
  return rows;
}

/* Bytes of its dynamic shared memory; sizeof(PipelineShared). */
constexpr int pipeline_prefill_shared_bytes(int head_dim, int consumers, int slots) {
  const int rows = 64 * consumers;
  const int bytes = rows * head_dim * 2                      /* queries */
                    + slots * 2 * kTile64Keys * head_dim * 2 /* K and V of a tile */
                    + 2 * rows * 4                           /* last keys, redo */
                    + 16                                     /* whether to clean values */
                    + rows * 8                               /* keys of each row */
                    + 32                                     /* the block's task */
                    + slots * 2 * 8 + 8;                     /* barriers */
  return (bytes + 15) / 16 * 16;
}

} /* namespace broach::window_rows */
