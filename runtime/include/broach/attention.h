#ifndef BROACH_ATTENTION_H
#define BROACH_ATTENTION_H

/* What attention operators work on, described once: the queries and outputs of a launch, and the KV
 * cache. The C interface, the C++ interface and the kernels read these structs as they stand, so
 * they are plain C of fixed widths, widest first, without padding, and include nothing.
 *
 * Letters: D = head_dim, contiguous; H = kv_heads * gqa_ratio query heads. Strides count elements.
 * Pointers are of the runtime's device. q, k, v and out hold bf16 or f16, as the shape says, and
 * are aligned to 16 bytes. Both structs are frozen: what an operator needs beyond them is a field
 * of its own arguments. */

/* The query heads of a launch's rows, and where their outputs go. */
typedef struct broach_attention_rows {
  const void* q;      /* [rows, H, D] */
  void* out;          /* [rows, H, D] */
  const float* sinks; /* [H] logits, for shapes with sinks; else NULL */
  long long q_row_stride, q_head_stride;
  long long out_row_stride, out_head_stride;
  int rows;
  float scale;   /* s = scale * q . k */
  float softcap; /* s = softcap * tanh(s / softcap), for shapes with softcap; else 0 */
  int reserved;  /* 0 */
} broach_attention_rows;

/* The keys and values of every stream. A slot is one stream's part of the cache; the shape's
 * kv_layout says where in it a position lies. */
typedef struct broach_kv_cache {
  void* k; /* [slots, length, kv_heads, D]; paged: [pages, page length, kv_heads, D] */
  void* v; /* as k */
  const int* page_table; /* [slots, page_table_stride] page numbers, for paged layouts; else NULL */
  long long k_slot_stride; /* Paged: elements from a page to the next. */
  long long k_position_stride, k_head_stride;
  long long v_slot_stride, v_position_stride, v_head_stride;
  long long page_table_stride; /* Entries a slot. */
  int kv_heads;
  int slots;
  int length; /* Positions a slot holds: ring length, linear length, pages a slot x page length. */
  int pages;  /* Pages in the pool, for paged layouts; else 0. */
} broach_kv_cache;

#endif
