#ifndef BROACH_BROACH_H
#define BROACH_BROACH_H

/* The C interface of broach: kernels ground to one exact shape at first use.
 *
 * Conventions, for every function here:
 * - Handles are opaque. What a `_create` function returns, the `_destroy` of the same name frees;
 *   `_destroy(NULL)` does nothing. A broach_window_rows stays valid after its runtime is destroyed.
 * - A structure that begins with `size` is filled with zeros by the caller, whose `size` is set to
 *   sizeof(the structure): a program built against an older header keeps working, and one built
 *   against a newer header is told when it sets a field that this library does not know.
 * - A function that can fail returns a broach_status and, on failure, writes words into `message`
 *   (which may be NULL). Status values are never renumbered; new ones are appended.
 * - Nothing throws across this interface. Any thread may call any function on any handle, except
 *   `_destroy`, which must be the last call on its handle.
 * - Strings are UTF-8 and end in a zero byte. Strides count elements, sizes count bytes.
 */

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define BROACH_C_API __attribute__((visibility("default")))
#else
#define BROACH_C_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct broach_runtime broach_runtime;
typedef struct broach_window_rows broach_window_rows;

/* Values equal those of the C++ interface's ErrorCode. */
typedef int32_t broach_status;
enum {
  BROACH_OK = 0,
  BROACH_INVALID_ARGUMENT = 1, /* A value cannot be served; the message says what would. */
  BROACH_UNSUPPORTED = 2,      /* Well formed, but not offered by this target or build. */
  BROACH_NOT_FOUND = 3,        /* A named thing does not exist. */
  BROACH_COMPILE_FAILED = 4,   /* The message ends with the compiler's whole log. */
  BROACH_COMPILER_MISSING = 5, /* The message lists what was tried. */
  BROACH_COMPILER_DIED = 6,
  BROACH_TIMED_OUT = 7,
  BROACH_IO = 8,
  BROACH_DAMAGED = 9,
  BROACH_DENIED = 10, /* A safety rule (owner, mode, signature) forbids the use. */
  BROACH_DRIVER = 11,
  BROACH_LIMIT_EXCEEDED = 12, /* A launch cannot fit the device. */
  BROACH_NOT_WARMED = 13,     /* First use `never` met a shape that no cache layer holds. */
  BROACH_CAPTURING = 14,      /* The stream captures, and the request would build or load. */
  BROACH_OUT_OF_MEMORY = 15,
  BROACH_INTERNAL = 16 /* A defect in broach. */
};

/* Where words about a failure go: at most `capacity` bytes into the caller's `text`, the zero byte
 * included. The first line is the message; a longer account, such as a log, may follow it. */
typedef struct broach_message {
  char* text;
  size_t capacity;
  size_t length; /* Out: bytes of the whole text without the zero byte; `capacity` or more: cut. */
} broach_message;

enum {
  BROACH_FIRST_USE_DEFAULT = 0,
  BROACH_FIRST_USE_WAIT = 1,       /* The call compiles. */
  BROACH_FIRST_USE_BACKGROUND = 2, /* A generic kernel of the same bits serves meanwhile. */
  BROACH_FIRST_USE_NEVER = 3       /* An error that names the shape. */
};

/* How a runtime is set up. A field left zero takes what the environment says (README.md lists the
 * variables), else the default. Strings and arrays are read during the call only. */
typedef struct broach_runtime_options {
  size_t size;
  const char* device;                   /* "auto", "host", "cuda", "cuda:1" */
  int32_t first_use;                    /* BROACH_FIRST_USE_... */
  uint32_t jobs;                        /* Compile workers at most. */
  const char* const* cache_directories; /* Candidates for the writable layer, best first. */
  size_t cache_directory_count;
  const char* const* read_only_caches; /* Directories and signed bundles. */
  size_t read_only_cache_count;
  uint64_t cache_bytes;
  uint64_t cache_objects;
  const char* worker;                           /* The broach-rtc program. */
  void (*notice)(void* user, const char* line); /* Takes one line; NULL: standard error. */
  void* notice_user;
  const char* remotes;       /* URLs of remote stores, separated by spaces; with their secrets. */
  const char* remote_secret; /* The one remote's secret, where its URL has none. */
  const char* signing_key;   /* The secret key's file that uploads are signed with. */
} broach_runtime_options;

enum { BROACH_OFF = 0, BROACH_ON = 1 };
enum { BROACH_BF16 = 0, BROACH_F16 = 1 };
enum { BROACH_FORM_DECODE = 0, BROACH_FORM_PREFILL = 1 };
enum {
  BROACH_ARITH_DEFAULT = 0,
  BROACH_ARITH_CHUNK256 = 1,
  BROACH_ARITH_TILE64 = 2,
  BROACH_ARITH_MMA32 = 3
};
enum { BROACH_KV_LINEAR = 0, BROACH_KV_RING = 1, BROACH_KV_PAGED = 2 };

/* What one window_rows operator is ground for. */
typedef struct broach_window_rows_shape {
  size_t size;
  uint32_t head_dim;         /* 64, 80, 96, 112, 128, 192, 256 or 512 */
  uint32_t gqa_ratio;        /* Query heads a KV head, 1 to 32. */
  uint32_t window;           /* Keys a row sees, its own included; 0: every earlier key. */
  uint32_t kv_layout;        /* BROACH_KV_... */
  uint32_t kv_layout_length; /* Positions of the ring or of a page; 0 for linear. */
  uint32_t dtype;            /* BROACH_BF16 or BROACH_F16: q, k, v and out. */
  uint32_t form;             /* BROACH_FORM_... */
  uint32_t arith;            /* BROACH_ARITH_... */
  uint32_t p32;
  uint32_t softcap;
  uint32_t sinks;
  uint32_t checked; /* Device-side range checks. */
} broach_window_rows_shape;

/* What one decode step works on. D = head_dim, H = kv_heads * gqa_ratio; D is contiguous. Pointers
 * are of the runtime's device; q, k, v, out and workspace are aligned to 16 bytes. */
typedef struct broach_window_rows_decode_args {
  size_t size;
  const void* q; /* [rows, H, D] */
  const void* k; /* [slot_count, length, kv_heads, D]; paged: [page, kv_heads, D] pages */
  const void* v; /* as k */
  void* out;     /* [rows, H, D] */
  const int32_t* positions;  /* [rows] position of the row's own key */
  const int32_t* slots;      /* [rows] slot of the row's stream */
  const int32_t* page_table; /* [slot_count, pages a slot], paged layouts only */
  const float* sinks;        /* [H], with sinks only */
  void* workspace;
  size_t workspace_bytes;
  int64_t q_row_stride, q_head_stride;
  int64_t k_slot_stride, k_position_stride, k_head_stride;
  int64_t v_slot_stride, v_position_stride, v_head_stride;
  int64_t out_row_stride, out_head_stride;
  int64_t page_table_stride;
  int32_t rows;
  int32_t kv_heads;
  int32_t slot_count;
  int32_t length;   /* Positions a slot holds. */
  int32_t max_keys; /* At least position + 1 of every row; 0: length. */
  float scale;
  float softcap;
  uint32_t reserved; /* 0: room for what would otherwise be padding. */
} broach_window_rows_decode_args;

/* What one prefill launch works on: chunks of several sequences, their rows one after another, by
 * an operator with BROACH_FORM_PREFILL. Row i of a sequence sits at the sequence's position + i and
 * sees the keys of its window up to `hi`, else up to its own; the chunks' own keys are in the cache
 * already. Everything that decode has too means the same; no workspace is used. */
typedef struct broach_window_rows_prefill_args {
  size_t size;
  const void* q; /* [rows, H, D] */
  const void* k; /* [slot_count, length, kv_heads, D]; paged: [page, kv_heads, D] pages */
  const void* v; /* as k */
  void* out;     /* [rows, H, D] */
  const int32_t* positions;  /* [sequences] position of the chunk's first row */
  const int32_t* slots;      /* [sequences] slot of the sequence */
  const int32_t* offsets;    /* [sequences + 1] first row of each chunk, then `rows` */
  const int32_t* hi;         /* [rows] last position seen, own to the chunk's last; may be NULL */
  const int32_t* page_table; /* [slot_count, pages a slot], paged layouts only */
  const float* sinks;        /* [H], with sinks only */
  int64_t q_row_stride, q_head_stride;
  int64_t k_slot_stride, k_position_stride, k_head_stride;
  int64_t v_slot_stride, v_position_stride, v_head_stride;
  int64_t out_row_stride, out_head_stride;
  int64_t page_table_stride;
  int32_t rows; /* Of all sequences together. */
  int32_t sequences;
  int32_t kv_heads;
  int32_t slot_count;
  int32_t length;   /* Positions a slot holds. */
  int32_t max_keys; /* At least position + 1 of every row; 0: length. */
  float scale;
  float softcap;
} broach_window_rows_prefill_args;

/* "0.1.0", the library's own version. */
BROACH_C_API const char* broach_version(void);

/* "invalid_argument"; "unknown" for a value that this library does not have. */
BROACH_C_API const char* broach_status_name(broach_status status);

/* Opens the device and the cache. `options` may be NULL. */
BROACH_C_API broach_status broach_runtime_create(const broach_runtime_options* options,
                                                 broach_runtime** runtime, broach_message* message);
BROACH_C_API void broach_runtime_destroy(broach_runtime* runtime);

/* Valid as long as the runtime: "NVIDIA H200", "sm_90a". */
BROACH_C_API const char* broach_runtime_device_name(const broach_runtime* runtime);
BROACH_C_API const char* broach_runtime_target_name(const broach_runtime* runtime);

/* The operator of a shape: loaded at once where a cache layer holds it, compiled where first use
 * allows that. `stream` is one that the caller may be capturing, or NULL. */
BROACH_C_API broach_status broach_window_rows_create(broach_runtime* runtime,
                                                     const broach_window_rows_shape* shape,
                                                     void* stream, broach_window_rows** op,
                                                     broach_message* message);
BROACH_C_API void broach_window_rows_destroy(broach_window_rows* op);

/* Scratch that a decode of this size needs. */
BROACH_C_API size_t broach_window_rows_workspace_bytes(const broach_window_rows* op, int32_t rows,
                                                       int32_t kv_heads, int32_t max_keys);

/* Launches one decode step on `stream` (NULL: the default stream). Looks nothing up, allocates
 * nothing, takes no lock, and may be captured. */
BROACH_C_API broach_status broach_window_rows_decode(const broach_window_rows* op,
                                                     const broach_window_rows_decode_args* args,
                                                     void* stream, broach_message* message);

/* Launches one chunk of each of several sequences, as broach_window_rows_decode does a step. */
BROACH_C_API broach_status broach_window_rows_prefill(const broach_window_rows* op,
                                                      const broach_window_rows_prefill_args* args,
                                                      void* stream, broach_message* message);

#ifdef __cplusplus
}
#endif

#endif
