#pragma once

/* What the window_rows kernels are launched with: read by the kernels and filled in by the
 * operator. Fixed-width fields only, widest first, no padding; compiles as C and as device code.
 */

#include "broach/attention.h"

typedef struct BroachWindowRowsDecode {
  broach_attention_rows attention;
  broach_kv_cache cache;
  const int* positions; /* [rows] position of the row's own key */
  const int* slots;     /* [rows] */
  void* workspace;      /* the caller's; geometry.h has its layout */
  int max_partials;     /* a row's, that the workspace has room for: chunks, or tiles */
  int window;           /* the shape's; the generic kernel reads it here */
  int gqa_ratio;        /* likewise */
  int layout;           /* likewise: 0 linear, 1 ring, 2 paged */
  int layout_length;    /* likewise: the ring's or the page's length */
  int reserved;
} BroachWindowRowsDecode;

/* Which CTAs compute a row's tiles, and who combines them (split-KV). */
enum {
  BROACH_TILE64_ONE_CTA = 0,       /* one CTA a (row, KV head), with an online softmax */
  BROACH_TILE64_LAST_CTA = 1,      /* CTAs leave partials; the last of a row combines them */
  BROACH_TILE64_COMBINE_KERNEL = 2 /* CTAs leave partials for the combine kernel */
};

/* Decode by tile64. */
typedef struct BroachWindowRowsTile64Decode {
  BroachWindowRowsDecode decode;
  unsigned long long launch; /* 1 to 2^48 - 1, another for each launch that shares a workspace */
  int tiles_a_split;         /* of 64 keys, from the row's first tile on; grid x = splits */
  int schedule;              /* BROACH_TILE64_... */
} BroachWindowRowsTile64Decode;

/* Prefill: chunks of several sequences. `common.attention.rows` counts the rows of all of them,
 * `common.positions` and `common.slots` have an entry a sequence: p0 and slot.
 */
typedef struct BroachWindowRowsPrefill {
  BroachWindowRowsDecode common;
  const int* offsets; /* [sequences + 1] first row of each sequence, then the row count */
  const int* hi;      /* [rows] last key a row sees, or null: its own position */
  int sequences;
  int reserved;
} BroachWindowRowsPrefill;

/* What the tensor copy engine knows of a tensor: the driver's CUtensorMap, whose bytes are its own.
 */
typedef struct BroachTensorMap {
  unsigned long long words[16];
} BroachTensorMap;

/* A prefill whose queries, keys and values are copied by the tensor copy engine. The maps describe
 * q as [heads][D / 64][rows][64], k and v as [slots or pages][kv_heads][D / 64][positions][64].
 * They come first: a map is aligned to 64 bytes, as the struct is by the kernel. */
typedef struct BroachWindowRowsTensorPrefill {
  BroachTensorMap q, k, v;
  BroachWindowRowsPrefill prefill;
} BroachWindowRowsTensorPrefill;
