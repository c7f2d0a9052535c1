#pragma once

/* What a kernel says of its own launch, as constant bytes beside it in the binary. Compiles as C.
 *
 * A kernel `name` that states its geometry (broach/kernel.cuh) leaves a variable
 * broach_geometry_<name> of this type. It is read out of a cubin, an AMD code object or a host
 * object without loading it, and every launch is held against it.
 */

#define BROACH_GEOMETRY_MAGIC 0x6d6f6567u /* "geom" in memory order */
#define BROACH_GEOMETRY_VERSION 1u
#define BROACH_GEOMETRY_PREFIX "broach_geometry_"

/* Dynamic shared memory whose size each launch says. */
#define BROACH_GEOMETRY_AT_LAUNCH 0xffffffffu

/* Units: threads, bytes and blocks. Least significant byte first, as every target here has it. */
typedef struct BroachLaunchGeometry {
  unsigned magic;
  unsigned version;
  unsigned block[3];
  unsigned dynamic_shared_bytes;
  unsigned cluster[3];  /* 0, 0, 0: none. */
  unsigned reserved[3]; /* 0. */
} BroachLaunchGeometry;
