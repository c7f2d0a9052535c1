#pragma once

/* What the qk_rows kernel is launched with: read by the kernel and filled in by the operator.
 * Fixed-width fields only, widest first, no padding; compiles as C and as device code. */

#include "broach/attention.h"

/* Letters: D = head_dim, contiguous; H = kv_heads * gqa_ratio query heads. Strides count elements.
 */
typedef struct BroachQkRows {
  broach_kv_cache cache;            /* written: k and v at each row's position */
  const void* q;                    /* [rows, H, D] projections, 16-bit */
  const void* k;                    /* [rows, kv_heads, D] */
  const void* v;                    /* [rows, kv_heads, D] */
  void* q_out;                      /* [rows, H, D]; may be q, with q's strides */
  const float* inverse_frequencies; /* [rope_dim / 2] */
  const float* q_norm;              /* [D] weights of an rms norm */
  const float* k_norm;              /* [D] */
  const float* q_scale;             /* [D], or [H, D] with a stride */
  const int* positions;             /* [rows] */
  const int* slots;                 /* [rows] */
  long long q_row_stride, q_head_stride;
  long long k_row_stride, k_head_stride;
  long long v_row_stride, v_head_stride;
  long long q_out_row_stride, q_out_head_stride;
  long long q_scale_head_stride; /* 0: one vector for every head */
  int rows;
  float epsilon;
  int gqa_ratio;     /* the shape's; the generic kernel reads it here */
  int rope_dim;      /* likewise */
  int layout;        /* likewise: 0 linear, 1 ring, 2 paged */
  int layout_length; /* likewise: the ring's or the page's length */
} BroachQkRows;
