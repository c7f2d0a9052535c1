#ifndef BROACH_SPARSE_ROWS_H
#define BROACH_SPARSE_ROWS_H

/* sparse_rows: attention over the blocks of keys that an indexer selected for each row, for decode
 * steps and prefill chunks alike. The conventions are those of broach.h. */

#include "broach/attention.h"
#include "broach/broach.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct broach_sparse_rows broach_sparse_rows;

enum { BROACH_TILE_SCALAR = 0, BROACH_TILE_MMA = 1 };
enum { BROACH_Q_CACHE = 0, BROACH_Q_F32 = 1 };

/* What an operator is specialised for. */
typedef struct broach_sparse_rows_shape {
  size_t size;
  uint32_t head_dim;         /* 64, 80, 96, 112, 128, 192, 256 or 512 */
  uint32_t gqa_ratio;        /* Query heads a KV head, 1 to 16. */
  uint32_t compress_ratio;   /* Keys a block: 1, 2, 4, 8 or 16 for mma, else 1 to 65536. */
  uint32_t tile;             /* BROACH_TILE_...: different sums of the same terms */
  uint32_t part_count;       /* scalar: parts of a row's list, 1 to 64; 0: 16 */
  uint32_t p_parts;          /* mma: 16-bit parts of P, 1 to 3; 0: 3 */
  uint32_t kv_layout;        /* BROACH_KV_... */
  uint32_t kv_layout_length; /* Positions of the ring or of a page; 0 for linear. */
  uint32_t dtype;            /* BROACH_BF16 or BROACH_F16: k and v */
  uint32_t q_dtype;          /* BROACH_Q_...: q and out, as k and v or fp32 */
  uint32_t checked;          /* Device-side checks, of block ids among others. */
} broach_sparse_rows_shape;

/* What one launch works on. Row i of the stream in slots[i] stands at positions[i]; it sees the
 * keys of its selected blocks, block b being keys b * R to b * R + R - 1, and its tail, the keys
 * from floor((position + 1) / R) * R to its own. Its ids are strictly increasing, each block wholly
 * at or before the row's position; a row without any key gets zeros. `attention.sinks` and
 * `.softcap` are not used. The workspace is aligned to 16 bytes. */
typedef struct broach_sparse_rows_args {
  size_t size;
  broach_attention_rows attention;
  broach_kv_cache cache;
  const int32_t* positions;                    /* [rows] */
  const int32_t* slots;                        /* [rows] */
  const int32_t* block_counts;                 /* [rows], or [rows, kv_heads] with a head stride */
  const int32_t* blocks;                       /* [rows, ...] ids, `block_row_stride` apart */
  int64_t count_row_stride, count_head_stride; /* Entries; head stride 0: one for all KV heads. */
  int64_t block_row_stride, block_head_stride;
  void* workspace;
  size_t workspace_bytes;
} broach_sparse_rows_args;

/* The operator of a shape. `model_compress_ratio` is what the model's config states: one that the
 * shape contradicts is refused. `stream` is one that the caller may be capturing, or NULL. */
BROACH_C_API broach_status broach_sparse_rows_create(broach_runtime* runtime,
                                                     const broach_sparse_rows_shape* shape,
                                                     uint32_t model_compress_ratio, void* stream,
                                                     broach_sparse_rows** op,
                                                     broach_message* message);
BROACH_C_API void broach_sparse_rows_destroy(broach_sparse_rows* op);

/* Scratch that a launch of this size needs; SIZE_MAX where no number of bytes is enough. */
BROACH_C_API size_t broach_sparse_rows_workspace_bytes(const broach_sparse_rows* op, int32_t rows,
                                                       int32_t kv_heads);

/* Launches on `stream` (NULL: the default stream). Looks nothing up, allocates nothing, takes no
 * lock, and may be captured. */
BROACH_C_API broach_status broach_sparse_rows_launch(const broach_sparse_rows* op,
                                                     const broach_sparse_rows_args* args,
                                                     void* stream, broach_message* message);

/* Checks one row's selection in host memory: that its ids are in order, not repeated, and not past
 * the row's position. */
BROACH_C_API broach_status broach_sparse_rows_check_selection(uint32_t compress_ratio,
                                                              int32_t position,
                                                              const int32_t* blocks, int32_t count,
                                                              broach_message* message);

#ifdef __cplusplus
}
#endif

#endif
