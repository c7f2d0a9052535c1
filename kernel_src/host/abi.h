#pragma once

/* What a kernel compiled for the host and the runtime that runs it agree on. Compiles as C.
 *
 * A compiled kernel `name` exports
 *   broach_host_record_<name>   a BroachHostRecord, constant bytes that an ELF reader can find
 *   broach_host_entry_<name>    a BroachHostEntry, called once for each thread of a block
 * A change of anything here bumps BROACH_HOST_ABI_VERSION: the loader refuses other versions.
 */

#define BROACH_HOST_MAGIC 0x74736f68u /* "host" in memory order */
#define BROACH_HOST_ABI_VERSION 1u
#define BROACH_HOST_RECORD_PREFIX "broach_host_record_"
#define BROACH_HOST_ENTRY_PREFIX "broach_host_entry_"

/* What a function needs to launch. Units: bytes and threads. */
typedef struct BroachHostRecord {
  unsigned magic;
  unsigned abi_version;
  unsigned block_threads;
  unsigned static_shared_bytes;
  unsigned params_bytes;
  unsigned reserved[3];
} BroachHostRecord;

/* Computes what `count` threads exchange, once, when the last of them has come. `lanes[i]` is what
 * the group's thread i handed to `meet`: its own results are written there too. */
typedef void (*BroachHostCombine)(void* const* lanes, unsigned count);

struct BroachHostThread;

/* What the runtime does for a thread of a block. */
typedef struct BroachHostCalls {
  /* Waits until every thread of the caller's group has come, then lets all of them go on. A group
   * is `group_threads` consecutive threads of the block from a multiple of `group_threads` on:
   * 32 is a warp, the block's thread count the block. `combine` may be null. Every thread of a
   * group must come with the same `combine`; anything else ends the launch with an error. */
  void (*meet)(struct BroachHostThread* thread, unsigned group_threads, void* lane,
               BroachHostCombine combine);
  /* Ends the launch with an error that says `reason` and `value`. Does not return. */
  void (*fail)(struct BroachHostThread* thread, const char* reason, long long value);
} BroachHostCalls;

/* One thread of a block, as its kernel sees it. Shared memory is the block's and 128-byte aligned.
 */
typedef struct BroachHostThread {
  const BroachHostCalls* calls;
  void* static_shared;
  void* dynamic_shared;
  unsigned thread;
  unsigned block_threads;
  unsigned block[3];
  unsigned grid[3];
  unsigned dynamic_shared_bytes;
} BroachHostThread;

typedef void (*BroachHostEntry)(BroachHostThread* thread, const void* params);
