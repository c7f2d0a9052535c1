#pragma once

/* What the sparse_rows kernels are launched with: read by the kernels and filled in by the
 * operator. Fixed-width fields only, widest first, no padding; compiles as C and as device code. */

#include "broach/attention.h"

typedef struct BroachSparseRows {
  broach_attention_rows
      attention; /* q and out: the cache's 16 bits, or fp32 where the shape says */
  broach_kv_cache cache;
  const int* positions;    /* [rows] position of the row's own key */
  const int* slots;        /* [rows] */
  const int* block_counts; /* [rows], or [rows, kv_heads] with a stride */
  const int* blocks;       /* [rows, ...] ids of the selected blocks, strictly increasing */
  void* workspace;         /* the caller's; layout private to the kernels */
  long long count_row_stride, count_head_stride; /* entries; head stride 0: one for all KV heads */
  long long block_row_stride, block_head_stride;
  int compress_ratio; /* the shape's; the generic kernel reads it here */
  int part_count;     /* likewise */
  int gqa_ratio;      /* likewise */
  int layout;         /* likewise: 0 linear, 1 ring, 2 paged */
  int layout_length;  /* likewise: the ring's or the page's length */
  int splits;         /* scalar: 1, one block a row and KV head; else one a part */
} BroachSparseRows;
