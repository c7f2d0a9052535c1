#pragma once

/* What the sage_exact kernels are launched with: read by the kernels and filled in by the operator.
 * Fixed-width fields only, widest first, no padding; compiles as C and as device code.
 *
 * N tokens, H heads, D = 128 dims a head, batch 1. G = ceil(N / 128) * 4 groups of 32 query rows,
 * T = ceil(N / 64) key tiles, P = T * 64 padded tokens. 16-bit tensors hold bf16. Strides count
 * elements; a head's 128 dims are contiguous.
 */

/* Boundary 0: RMS norm and rotation of q or k, per head. */
typedef struct BroachSageExactPrep {
  const unsigned short* in;     /* [N, H, D], strided */
  unsigned short* out;          /* [N, H, D], strided */
  const unsigned short* weight; /* [D], or null: ones */
  const unsigned short* cosine; /* [N, 48] */
  const unsigned short* sine;   /* [N, 48] */
  long long in_row_stride, in_head_stride;
  long long out_row_stride, out_head_stride;
  int tokens;
  int heads;
} BroachSageExactPrep;

/* Boundary 1: the mean of k over tokens. The reduction's geometry is the reference's on one device:
 * block (h, c) of `blocks` sums tokens y + 4 c, stepping by `step`. */
typedef struct BroachSageExactMean {
  const unsigned short* k; /* [N, H, D], strided */
  float* partial;          /* [H, blocks, D] workspace */
  unsigned short* mean;    /* [H, D] */
  long long row_stride, head_stride;
  int tokens;
  int heads;
  int lanes;    /* 4 where tokens are split over y, 1 where one thread sums them all */
  int blocks;   /* a head */
  int step;     /* tokens between a thread's consecutive ones */
  float factor; /* what the sum is multiplied by */
} BroachSageExactMean;

/* Boundary 2: q (32 rows a group, no mean) or k (64 rows a group, less its mean) as int8. */
typedef struct BroachSageExactInt8 {
  const unsigned short* in;   /* [N, H, D], strided */
  const unsigned short* mean; /* [H, D], k only */
  signed char* out;           /* [N, H, D] contiguous */
  float* scale;               /* [H, groups] */
  const float* unrounded;     /* [H, mean_blocks, D], read by a planted fault alone */
  long long row_stride, head_stride;
  int tokens;
  int heads;
  int groups;
  int mean_blocks;
} BroachSageExactInt8;

/* Boundary 3: v as E4M3, transposed, padded, with the positions of each 16 tokens permuted. */
typedef struct BroachSageExactFp8 {
  const unsigned short* v;    /* [N, H, D], strided */
  float* range;               /* [H, chunks, 2, D] workspace: running maxima, then minima */
  float* scale;               /* [H, D] */
  unsigned char* out;         /* [D, H, P] */
  unsigned short* transposed; /* [D, H, P] bf16, or null */
  long long row_stride, head_stride;
  int tokens;
  int heads;
  int chunks;       /* of tokens, a head */
  int chunk_tokens; /* a multiple of 16 */
} BroachSageExactFp8;

/* Boundary 4. */
typedef struct BroachSageExactAttention {
  const signed char* q;   /* [N, H, D] */
  const signed char* k;   /* [N, H, D] */
  const unsigned char* v; /* [D, H, P] */
  const float* q_scale;   /* [H, G] */
  const float* k_scale;   /* [H, T] */
  const float* v_scale;   /* [H, D] */
  unsigned short* out;    /* [N, H, D], strided */
  float* softmax_max;     /* [H, N] final m, or null */
  float* softmax_sum;     /* [H, N] final d, or null */
  void* tiles;            /* packed K and V, for kernels that read those */
  long long out_row_stride, out_head_stride;
  int tokens;
  int heads;
} BroachSageExactAttention;
