#ifndef BROACH_WINDOW_ROWS_H
#define BROACH_WINDOW_ROWS_H

/* window_rows: sliding-window or full GQA attention over a KV cache, as two operators of one shape:
 * a decode step and a prefill. The conventions are those of broach.h. */

#include "broach/attention.h"
#include "broach/broach.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct broach_window_rows_decode broach_window_rows_decode;
typedef struct broach_window_rows_prefill broach_window_rows_prefill;

enum {
  BROACH_ARITH_DEFAULT = 0,
  BROACH_ARITH_CHUNK256 = 1,
  BROACH_ARITH_TILE64 = 2,
  BROACH_ARITH_MMA32 = 3,
  BROACH_ARITH_TILE64_EX2 = 4 /* tile64 with sm_90's exponential: sm_90a, sm_90, the host. */
};

/* What both operators of a layer are specialised for. */
typedef struct broach_window_rows_shape {
  size_t size;
  uint32_t head_dim;         /* 64, 80, 96, 112, 128, 192, 256 or 512 */
  uint32_t gqa_ratio;        /* Query heads a KV head, 1 to 32. */
  uint32_t window;           /* Keys a row sees, its own included; 0: every earlier key. */
  uint32_t kv_layout;        /* BROACH_KV_... */
  uint32_t kv_layout_length; /* Positions of the ring or of a page; 0 for linear. */
  uint32_t dtype;            /* BROACH_BF16 or BROACH_F16: q, k, v and out. */
  uint32_t arith;            /* BROACH_ARITH_... */
  uint32_t p32;
  uint32_t softcap;
  uint32_t sinks;
  uint32_t checked;  /* Device-side range checks. */
  uint32_t reserved; /* 0 */
} broach_window_rows_shape;

/* What one decode step works on: a row a stream. Row i sees the keys of its window up to its own,
 * which is in the cache already. Pointers are of the runtime's device; the workspace is aligned to
 * 16 bytes. */
typedef struct broach_window_rows_decode_args {
  size_t size;
  broach_attention_rows attention;
  broach_kv_cache cache;
  const int32_t* positions; /* [rows] position of the row's own key */
  const int32_t* slots;     /* [rows] slot of the row's stream */
  void* workspace;
  size_t workspace_bytes;
  int32_t max_keys;  /* At least position + 1 of every row; 0: cache.length. */
  uint32_t reserved; /* 0 */
} broach_window_rows_decode_args;

/* What one prefill launch works on: chunks of several sequences, their rows one after another. Row
 * i of a sequence sits at the sequence's position + i and sees the keys of its window up to `hi`,
 * else up to its own; the chunks' own keys are in the cache already. No workspace is used. */
typedef struct broach_window_rows_prefill_args {
  size_t size;
  broach_attention_rows attention; /* `rows` counts those of all sequences. */
  broach_kv_cache cache;
  const int32_t* positions; /* [sequences] position of the chunk's first row */
  const int32_t* slots;     /* [sequences] slot of the sequence */
  const int32_t* offsets;   /* [sequences + 1] first row of each chunk, then `rows` */
  const int32_t* hi;        /* [rows] last position seen, own to the chunk's last; may be NULL */
  int32_t sequences;
  int32_t max_keys; /* At least position + 1 of every row; 0: cache.length. */
} broach_window_rows_prefill_args;

/* The operators of a shape: loaded at once where a cache layer holds them, compiled where first use
 * allows that. `stream` is one that the caller may be capturing, or NULL. */
BROACH_C_API broach_status broach_window_rows_decode_create(broach_runtime* runtime,
                                                            const broach_window_rows_shape* shape,
                                                            void* stream,
                                                            broach_window_rows_decode** op,
                                                            broach_message* message);
BROACH_C_API void broach_window_rows_decode_destroy(broach_window_rows_decode* op);

BROACH_C_API broach_status broach_window_rows_prefill_create(broach_runtime* runtime,
                                                             const broach_window_rows_shape* shape,
                                                             void* stream,
                                                             broach_window_rows_prefill** op,
                                                             broach_message* message);
BROACH_C_API void broach_window_rows_prefill_destroy(broach_window_rows_prefill* op);

/* Scratch that a decode of this size needs; SIZE_MAX where no number of bytes is enough. */
BROACH_C_API size_t broach_window_rows_decode_workspace_bytes(const broach_window_rows_decode* op,
                                                              int32_t rows, int32_t kv_heads,
                                                              int32_t max_keys);

/* Launch on `stream` (NULL: the default stream). Look nothing up, allocate nothing, take no lock,
 * and may be captured. */
BROACH_C_API broach_status broach_window_rows_decode_launch(
    const broach_window_rows_decode* op, const broach_window_rows_decode_args* args, void* stream,
    broach_message* message);
BROACH_C_API broach_status broach_window_rows_prefill_launch(
    const broach_window_rows_prefill* op, const broach_window_rows_prefill_args* args, void* stream,
    broach_message* message);

#ifdef __cplusplus
}
#endif

#endif
