#ifndef BROACH_QK_ROWS_H
#define BROACH_QK_ROWS_H

/* qk_rows: RoPE, head norms and the writes of K and V, for rows of several streams in one launch.
 * The conventions are those of broach.h. */

#include "broach/attention.h"
#include "broach/broach.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct broach_qk_rows broach_qk_rows;

enum { BROACH_ROPE_HALF = 0, BROACH_ROPE_INTERLEAVED = 1 };
enum { BROACH_NORM_NONE = 0, BROACH_NORM_RMS = 1, BROACH_NORM_L2 = 2 };
enum { BROACH_ORDER_ROPE_NORM = 0, BROACH_ORDER_NORM_ROPE = 1 };

/* What an operator is specialised for. */
typedef struct broach_qk_rows_shape {
  size_t size;
  uint32_t head_dim;         /* 64, 80, 96, 112, 128, 192, 256 or 512 */
  uint32_t gqa_ratio;        /* Query heads a KV head, 1 to 32. */
  uint32_t rope_dim;         /* First dims of a head that turn: even, 0 (none) to head_dim. */
  uint32_t rope_style;       /* BROACH_ROPE_... */
  uint32_t norm;             /* BROACH_NORM_... */
  uint32_t order;            /* BROACH_ORDER_... */
  uint32_t q_scale;          /* Query heads are scaled by an fp32 vector, last. */
  uint32_t kv_layout;        /* BROACH_KV_... */
  uint32_t kv_layout_length; /* Positions of the ring or of a page; 0 for linear. */
  uint32_t dtype;            /* BROACH_BF16 or BROACH_F16 */
  uint32_t checked;          /* Device-side range checks. */
  uint32_t reserved;         /* 0 */
} broach_qk_rows_shape;

/* What one launch works on. D = head_dim, contiguous; H = kv_heads * gqa_ratio; strides count
 * elements and are multiples of 8; pointers to 16-bit values are aligned to 16 bytes. Row i of a
 * stream at positions[i] turns by that position, and its K and V go to the cell of that position in
 * slots[i]. No two rows may have the same cell. */
typedef struct broach_qk_rows_args {
  size_t size;
  broach_kv_cache cache;            /* k and v are written, at the rows' cells alone. */
  const void* q;                    /* [rows, H, D] projections */
  const void* k;                    /* [rows, kv_heads, D] */
  const void* v;                    /* [rows, kv_heads, D]; stored as they are */
  void* q_out;                      /* [rows, H, D]; may be q, with q's strides */
  const float* inverse_frequencies; /* [rope_dim / 2]: angle = fl(position * inverse) */
  const float* q_norm;              /* [D] weights, for norm=rms; else NULL */
  const float* k_norm;              /* [D], likewise */
  const float* q_scale;             /* [D], or [H, D] with a stride, for q_scale=on; else NULL */
  const int32_t* positions;         /* [rows] */
  const int32_t* slots;             /* [rows] */
  int64_t q_row_stride, q_head_stride;
  int64_t k_row_stride, k_head_stride;
  int64_t v_row_stride, v_head_stride;
  int64_t q_out_row_stride, q_out_head_stride;
  int64_t q_scale_head_stride; /* 0: one vector for every head */
  int32_t rows;
  float epsilon; /* Of the norm: on the mean (rms) or on the sum (l2). */
} broach_qk_rows_args;

/* The operator of a shape: loaded at once where a cache layer holds it, compiled where first use
 * allows that. `stream` is one that the caller may be capturing, or NULL. */
BROACH_C_API broach_status broach_qk_rows_create(broach_runtime* runtime,
                                                 const broach_qk_rows_shape* shape, void* stream,
                                                 broach_qk_rows** op, broach_message* message);
BROACH_C_API void broach_qk_rows_destroy(broach_qk_rows* op);

/* Launches on `stream` (NULL: the default stream). Looks nothing up, allocates nothing, takes no
 * lock, and may be captured. */
BROACH_C_API broach_status broach_qk_rows_launch(const broach_qk_rows* op,
                                                 const broach_qk_rows_args* args, void* stream,
                                                 broach_message* message);

#ifdef __cplusplus
}
#endif

#endif
