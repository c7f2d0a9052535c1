#pragma once

/* How the mma kernel lays out its shared memory: the renderer computes the same constants that the
 * kernel is compiled with. No header is included; compiles as host and device C++.
 *
 * Rows of 16-bit operands are an odd number of 16-byte units long, which keeps ldmatrix free of
 * bank conflicts. */

namespace broach::sparse_rows {

/* Threads of a block. AMD's waves hold more of a tile each, and twice as many share the registers.
 */
constexpr int kMmaThreadsMmaSync = 256; /* of chips whose matrix unit is mma.sync, and the host */
constexpr int kMmaThreadsAmd = 512;
constexpr int kMmaTileKeys = 64;

/* Tile positions whose masks are made at a time. */
constexpr int kSpanTiles = 64;

constexpr int kOperandPad = 8;

/* Columns of a tile, (row, query head), in blocks of 16. */
constexpr int column_blocks(int tile_rows, int gqa_ratio) {
  return (tile_rows * gqa_ratio + 15) / 16;
}

/* Output values that a thread holds, where `unit_lanes` threads hold a 16 x 16 tile together: parts
 * of 16 dims go round the units, and groups of units share the column blocks (mma.cuh). */
constexpr int thread_outputs(int head_dim, int blocks, int piece_dims, int threads,
                             int unit_lanes) {
  const int units = threads / unit_lanes;
  const int parts = piece_dims / 16;
  const int part_units = parts < units ? parts : units;
  const int groups = units / part_units;
  return head_dim / piece_dims * ((parts + part_units - 1) / part_units) *
         ((blocks + groups - 1) / groups) * (256 / unit_lanes);
}

/* More would not stay in registers beside a piece's products. */
constexpr int kMostThreadOutputs = 64;

/* Elements of a column's place, which holds the scores of 64 keys in fp32 and then P's parts. */
constexpr int column_elems(int p_parts) { return p_parts == 1 ? 136 : p_parts == 2 ? 152 : 216; }

/* Bytes of the kernel's dynamic shared memory; sizeof(MmaShared). */
constexpr int mma_shared_bytes(int head_dim, int tile_rows, int gqa_ratio, int q_parts, int p_parts,
                               int piece_dims, int stages) {
  const int columns = 16 * column_blocks(tile_rows, gqa_ratio);
  return stages * kMmaTileKeys * (piece_dims + kOperandPad) * 2 /* K and V */
         + q_parts * columns * (head_dim + kOperandPad) * 2     /* queries */
         + columns * column_elems(p_parts) * 2                  /* scores and P */
         + columns * (2 * 4 + 4 + 4)                            /* rescales, sums, redo */
         + tile_rows * kSpanTiles * 2 * 4                       /* masks */
         + kSpanTiles * 4                                       /* the span's tiles */
         + (4 * 4 + 4) * 4; /* cursors, taken, tails, next; count */
}

} /* namespace broach::sparse_rows */
