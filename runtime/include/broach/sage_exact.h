#ifndef BROACH_SAGE_EXACT_H
#define BROACH_SAGE_EXACT_H

/* sage_exact: attention with int8 q and k and E4M3 p and v, byte for byte its reference's
 * (SageAttention 2.2.0 on sm_90), in boundaries that run alone or one after another. The
 * conventions are those of broach.h.
 *
 * N tokens, H heads, D = 128 dims a head, batch 1, every token sees all. G = ceil(N / 128) * 4
 * groups of 32 query rows, T = ceil(N / 64) key tiles, P = T * 64 padded tokens. Tensors are device
 * pointers of the runtime's device, 16-byte aligned; strides count elements and are multiples of 8;
 * D is contiguous. Slices of one interleaved projection have row_stride 3 * H * D.
 */

#include "broach/broach.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct broach_sage_exact broach_sage_exact;

/* How attention is computed; every schedule has the same bits. */
enum {
  BROACH_SAGE_SCHEDULE_DEFAULT = 0,
  BROACH_SAGE_SCHEDULE_PLAIN = 1,
  BROACH_SAGE_SCHEDULE_WARPGROUP = 2 /* sm_90a */
};

/* What the operator is specialised for. The mean of k adds up its tokens as the reference does on a
 * device of `multiprocessors`, each with room for `threads_per_multiprocessor`: its bits depend on
 * them. 0 takes an H200's, 132 and 2,048, of which the golden bytes are. */
typedef struct broach_sage_exact_shape {
  size_t size;
  uint32_t schedule; /* BROACH_SAGE_SCHEDULE_... */
  uint32_t multiprocessors;
  uint32_t threads_per_multiprocessor;
  uint32_t reserved; /* 0 */
} broach_sage_exact_shape;

/* A bf16 tensor [N, H, D]. */
typedef struct broach_sage_exact_tensor {
  const void* data;
  int64_t row_stride;
  int64_t head_stride; /* 0: D */
} broach_sage_exact_tensor;

/* The tensors of boundaries 2 and 3, all contiguous. */
typedef struct broach_sage_exact_quantised {
  int8_t* q;  /* [N, H, D] */
  int8_t* k;  /* [N, H, D] */
  uint8_t* v; /* [D, H, P] E4M3; 16 positions hold tokens 0 1 8 9 2 3 10 11 4 5 12 13 6 7 14 15 */
  float* q_scale; /* [H, G] */
  float* k_scale; /* [H, T] */
  float* v_scale; /* [H, D] */
} broach_sage_exact_quantised;

/* What a call works on. Boundaries 1 to 3 read q, k and v and write the workspace; attention reads
 * the workspace, or `quantised` where its pointers are set, and writes out. */
typedef struct broach_sage_exact_args {
  size_t size;
  broach_sage_exact_tensor q;
  broach_sage_exact_tensor k;
  broach_sage_exact_tensor v;
  broach_sage_exact_quantised quantised; /* for attention alone; all pointers or none */
  void* out;                             /* [N, H, D] bf16 */
  int64_t out_row_stride;
  int64_t out_head_stride; /* 0: D */
  void* workspace;
  size_t workspace_bytes;
  int32_t tokens;
  int32_t heads;
} broach_sage_exact_args;

/* Boundary 0 for q or k: RMS norm of each head, then rotation of dims 0 to 95. */
typedef struct broach_sage_exact_prep_args {
  size_t size;
  broach_sage_exact_tensor in;
  void* out;          /* [N, H, D] bf16; may be `in` */
  const void* weight; /* [D] bf16, or NULL: ones */
  const void* cosine; /* [N, 48] bf16 */
  const void* sine;   /* [N, 48] bf16 */
  int64_t out_row_stride;
  int64_t out_head_stride; /* 0: D */
  int32_t tokens;
  int32_t heads;
} broach_sage_exact_prep_args;

/* Where a boundary leaves its tensors in the workspace. */
typedef struct broach_sage_exact_tensors {
  void* k_mean; /* [H, D] bf16 */
  broach_sage_exact_quantised quantised;
} broach_sage_exact_tensors;

/* The operator: loaded at once where a cache layer holds its plans, compiled where first use allows
 * that. `stream` is one that the caller may be capturing, or NULL. */
BROACH_C_API broach_status broach_sage_exact_create(broach_runtime* runtime,
                                                    const broach_sage_exact_shape* shape,
                                                    void* stream, broach_sage_exact** op,
                                                    broach_message* message);
BROACH_C_API void broach_sage_exact_destroy(broach_sage_exact* op);

/* Bytes of scratch for any call of this size; 0 for sizes that are not served. */
BROACH_C_API size_t broach_sage_exact_workspace_bytes(const broach_sage_exact* op, int32_t tokens,
                                                      int32_t heads);

/* Where the tensors lie in a call's workspace. */
BROACH_C_API broach_status broach_sage_exact_places(const broach_sage_exact* op,
                                                    const broach_sage_exact_args* args,
                                                    broach_sage_exact_tensors* tensors,
                                                    broach_message* message);

/* Launches on `stream` (NULL: the default stream): boundaries 1 to 4, or one of them. They look
 * nothing up, allocate nothing, take no lock, and may be captured. */
BROACH_C_API broach_status broach_sage_exact_run(const broach_sage_exact* op,
                                                 const broach_sage_exact_args* args, void* stream,
                                                 broach_message* message);
BROACH_C_API broach_status broach_sage_exact_k_mean(const broach_sage_exact* op,
                                                    const broach_sage_exact_args* args,
                                                    void* stream, broach_message* message);
BROACH_C_API broach_status broach_sage_exact_qk_int8(const broach_sage_exact* op,
                                                     const broach_sage_exact_args* args,
                                                     void* stream, broach_message* message);
BROACH_C_API broach_status broach_sage_exact_v_fp8(const broach_sage_exact* op,
                                                   const broach_sage_exact_args* args, void* stream,
                                                   broach_message* message);
BROACH_C_API broach_status broach_sage_exact_attention(const broach_sage_exact* op,
                                                       const broach_sage_exact_args* args,
                                                       void* stream, broach_message* message);
BROACH_C_API broach_status broach_sage_exact_prep(const broach_sage_exact* op,
                                                  const broach_sage_exact_prep_args* args,
                                                  void* stream, broach_message* message);

#ifdef __cplusplus
}
#endif

#endif
