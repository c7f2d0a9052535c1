#ifndef BROACH_BROACH_H
#define BROACH_BROACH_H

/* The C interface of broach: kernels specialised for one exact shape at first use. The operators of
 * each family of kernels are in a header of their own (broach/FAMILY.h).
 *
 * Conventions, for every function here:
 * - Handles are opaque. What a `_create` function returns, the `_destroy` of the same name frees;
 *   `_destroy(NULL)` does nothing. An operator stays valid after its runtime is destroyed.
 * - A structure that begins with `size` is filled with zeros by the caller, whose `size` is set to
 *   sizeof(the structure): a program built against an older header keeps working, and one built
 *   against a newer header is told when it sets a field that this library does not know. A size
 *   above 1,024 is refused: no structure of any release has so many bytes.
 * - A function that can fail returns a broach_status and, on failure, writes words into `message`
 *   (which may be NULL). Status values are never renumbered; new ones are appended.
 * - Nothing throws across this interface. Any thread may call any function on any handle, except
 *   `_destroy`, which must be the last call on its handle.
 * - Strings are UTF-8 and end in a zero byte. Strides count elements, sizes count bytes.
 */

#include <stddef.h>
#include <stdint.h>

#include "broach/version.h"

#if defined(__GNUC__)
#define BROACH_C_API __attribute__((visibility("default")))
#else
#define BROACH_C_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct broach_runtime broach_runtime;

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
enum { BROACH_KV_LINEAR = 0, BROACH_KV_RING = 1, BROACH_KV_PAGED = 2 };

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

#ifdef __cplusplus
}
#endif

#endif
