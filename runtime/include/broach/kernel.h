#ifndef BROACH_KERNEL_H
#define BROACH_KERNEL_H

/* Kernels of an engine's own: a family from a file or from memory, or one source. The conventions
 * are those of broach.h; docs/own_families.md describes the family file. */

#include "broach/broach.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct broach_kernel_family broach_kernel_family;
typedef struct broach_kernel broach_kernel;

/* A source by the name that the family file lists. */
typedef struct broach_kernel_source {
  size_t size;
  const char* name;
  const char* bytes;
  size_t byte_count;
} broach_kernel_source;

/* Reads a family file and the sources beside it. */
BROACH_C_API broach_status broach_kernel_family_load(const char* path,
                                                     broach_kernel_family** family,
                                                     broach_message* message);

/* Takes a family file's text and its sources from memory; all is copied. `sources` is an array of
 * `source_count` structures, each `source_size` bytes after the one before it:
 * sizeof(broach_kernel_source). */
BROACH_C_API broach_status broach_kernel_family_create(const char* text,
                                                       const broach_kernel_source* sources,
                                                       size_t source_count, size_t source_size,
                                                       broach_kernel_family** family,
                                                       broach_message* message);
BROACH_C_API void broach_kernel_family_destroy(broach_kernel_family* family);

/* The kernel of a shape: `values` are `value_count` texts as "dim=4096", one a parameter; those
 * that are left out have their defaults. `stream` is one that the caller may be capturing, or NULL.
 * Under first use `background` a kernel that no cache layer has is begun, and the status is
 * BROACH_NOT_WARMED until it is there. */
BROACH_C_API broach_status broach_kernel_create(broach_runtime* runtime,
                                                const broach_kernel_family* family,
                                                const char* const* values, size_t value_count,
                                                void* stream, broach_kernel** kernel,
                                                broach_message* message);

/* As broach_kernel_create, but never waits: `*kernel` is NULL and the status BROACH_OK while the
 * kernel is being loaded or compiled, which this begins. */
BROACH_C_API broach_status broach_kernel_try_create(broach_runtime* runtime,
                                                    const broach_kernel_family* family,
                                                    const char* const* values, size_t value_count,
                                                    broach_kernel** kernel,
                                                    broach_message* message);

/* The kernel of one source, which has a kernel function of this name. */
BROACH_C_API broach_status broach_kernel_compile(broach_runtime* runtime, const char* function,
                                                 const char* source, broach_kernel** kernel,
                                                 broach_message* message);
BROACH_C_API void broach_kernel_destroy(broach_kernel* kernel);

/* Where the value of one parameter lies, and its size. */
typedef struct broach_kernel_argument {
  const void* data;
  size_t bytes;
} broach_kernel_argument;

/* What one launch has beside its arguments. */
typedef struct broach_kernel_launch_args {
  size_t size;
  uint32_t grid[3];    /* Blocks; a 0 counts as 1. */
  uint32_t block[3];   /* Threads; all 0: what the function states. */
  uint32_t cluster[3]; /* Blocks; all 0: what the function states. */
  uint32_t dynamic_shared_bytes;
  uint32_t dynamic_shared_given; /* 0: what the function states. */
  uint32_t cooperative;          /* The blocks run all at once and may wait for each other. */
  uint32_t programmatic;         /* May start before the launch in front of it has ended. */
  uint32_t reserved;             /* 0 */
} broach_kernel_launch_args;

/* Launches a function by the family's name for it, with `argument_count` arguments in the order of
 * its parameters. Allocates nothing, takes no lock, and may be captured. */
BROACH_C_API broach_status broach_kernel_launch(const broach_kernel* kernel, const char* function,
                                                const broach_kernel_launch_args* launch,
                                                const broach_kernel_argument* arguments,
                                                size_t argument_count, void* stream,
                                                broach_message* message);

/* Writes to a __constant__ or __device__ variable of the kernel's own copy of its source. */
BROACH_C_API broach_status broach_kernel_set_symbol(const broach_kernel* kernel, const char* name,
                                                    const void* bytes, size_t byte_count,
                                                    void* stream, broach_message* message);

/* The kernel's key: 32 hex digits, valid as long as the kernel. */
BROACH_C_API const char* broach_kernel_key(const broach_kernel* kernel);

#ifdef __cplusplus
}
#endif

#endif
