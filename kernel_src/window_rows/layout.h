#pragma once

/* How a kernel made of MMA steps lays out its shared memory: the renderer computes the same
 * constants that the kernel is compiled with. No header is included; compiles as host and device
 * C++.
 *
 * Keys move through shared memory in pieces of a tile's keys x some dims, K before V, in a ring of
 * stages. Rows are padded by 16 bytes: with 16-dim units that makes every row an odd number of
 * 16-byte units, which keeps ldmatrix free of bank conflicts. Where warpgroups multiply, rows lie
 * in panels instead (tiles/panels.cuh).
 */

namespace broach::window_rows {

/* Keys of a tile. */
constexpr int kTile64Keys = 64;
constexpr int kMma32Keys = 32;

/* Threads of a block of the fold kernel: those that fold values, and a warp for the sums. */
constexpr int kFoldValueThreads = 128;
constexpr int kFoldThreads = kFoldValueThreads + 32;

/* Padding of 16-bit rows, in elements. */
constexpr int kRowPad = 8;

/* Dims of a tile64 piece: the largest divisor of head_dim up to 128 that is a multiple of 16. */
constexpr int piece_dims(int head_dim) {
  return head_dim <= 128 ? head_dim : head_dim == 192 ? 96 : 128;
}

/* Dims of an mma32 piece: with half of the keys, twice the dims take the same room. */
constexpr int mma32_piece_dims(int head_dim) { return head_dim <= 256 ? head_dim : 256; }

/* Query heads of a KV head in blocks of 8 columns: 1, 2 or 4. */
constexpr int head_blocks(int gqa_ratio) { return gqa_ratio <= 8 ? 1 : gqa_ratio <= 16 ? 2 : 4; }

/* Warps of a decode block: the accumulators of head_dim x heads outputs must stay in registers. */
constexpr int decode_warps(int head_dim, int blocks) { return head_dim * blocks > 1024 ? 8 : 4; }

/* Rows of a prefill block whose warps multiply: four bands of 16. */
constexpr int kWarpPrefillRows = 64;

/* Warps of a prefill block: above 256 dims a band's outputs need the registers of two; a generic
 * kernel's run-time values take so many that 256 dims do as well. */
constexpr int prefill_warps(int head_dim, bool generic) {
  return head_dim > 256 || (generic && head_dim == 256) ? 8 : 4;
}

/* Bytes of the prefill kernel's dynamic shared memory; sizeof(PrefillShared). */
constexpr int prefill_shared_bytes(int head_dim, int tile_keys, int piece, int stages) {
  return kWarpPrefillRows * (head_dim + kRowPad) * 2  /* queries */
         + stages * tile_keys * (piece + kRowPad) * 2 /* pieces */
         + 2 * kWarpPrefillRows * 4                   /* last keys, redo */
         + 16;                                        /* whether values have to be cleaned */
}

/* Whether a prefill's tiles can be multiplied by warpgroups: its dims are whole panels. */
constexpr bool has_panels(int head_dim) { return head_dim % 64 == 0; }

/* Warpgroups of a prefill block, each with 64 rows: as many as the registers hold outputs of. Above
 * 256 dims two share 64 rows. */
constexpr int prefill_warpgroups(int head_dim) { return head_dim <= 128 ? 3 : 2; }
constexpr int warpgroup_prefill_rows(int head_dim) {
  return head_dim > 256 ? 64 : 64 * prefill_warpgroups(head_dim);
}

/* Dims of a piece in panels: all, while several pieces fit. */
constexpr int panel_piece_dims(int head_dim) { return head_dim <= 256 ? head_dim : 128; }

/* Bytes of the dynamic shared memory of such a kernel; sizeof its BlockShared. */
constexpr int warpgroup_prefill_shared_bytes(int head_dim, int stages) {
  const int rows = warpgroup_prefill_rows(head_dim);
  return rows * head_dim * 2                                     /* queries */
         + stages * kTile64Keys * panel_piece_dims(head_dim) * 2 /* pieces */
         + 2 * rows * 4                                          /* last keys, redo */
         + 16                                                    /* whether to clean values */
         + stages * 2 * 8;                                       /* barriers */
}

/* Bytes of the decode kernel's dynamic shared memory; sizeof(DecodeShared). */
constexpr int decode_shared_bytes(int head_dim, int blocks, int p_halves, int stages) {
  const int heads = 8 * blocks;
  return stages * kTile64Keys * (piece_dims(head_dim) + kRowPad) * 2 /* pieces */
         + heads * (head_dim + kRowPad) * 2                          /* queries */
         + p_halves * heads * (kTile64Keys + kRowPad) * 2            /* P, 16-bit */
         + heads * (kTile64Keys + kRowPad) * 4                       /* P, fp32 */
         + (4 + 1 + 1) * heads * 4                                   /* maxima, sums, redo */
         + 16;                                                       /* arrival */
}

} /* namespace broach::window_rows */
