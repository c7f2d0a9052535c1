#pragma once

// One source for three compilers: NVRTC (or nvcc), hiprtc (or hipcc), and a C++17 host compiler
// through host/abi.h. No standard or toolkit header is included.
//
// A kernel is written
//
//   BROACH_GLOBAL(broach_family_part, 256, BroachFamilyParams, PartShared) {
//     // `thread` (broach::Thread), `params` (const BroachFamilyParams&), `shared` (PartShared&)
//   }
//
// and becomes an extern "C" function whose only parameter is the struct, by value. PartShared is
// the kernel's static shared memory, a trivial struct; broach::NoShared where there is none.
// Functions that ask where they run, exchange or wait take the Thread: it is empty on a GPU.
//
// A warp is 32 consecutive threads everywhere, on AMD's 64-wide waves too.

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define BROACH_CUDA 1
#elif defined(__HIP__) || defined(__HIPCC_RTC__) || defined(__HIPCC__)
#define BROACH_HIP 1
#else
#define BROACH_HOST 1
#include "host/abi.h"
#endif

#if defined(BROACH_HOST)
#define BROACH_DEVICE inline
#define BROACH_UNROLL
#define BROACH_ROLLED
#else
#define BROACH_DEVICE __device__ __forceinline__
#define BROACH_UNROLL _Pragma("unroll")
// For loops off the common path, or whose trip count alone would have a compiler repeat their body.
#define BROACH_ROLLED _Pragma("unroll 1")
#endif
#if defined(BROACH_HIP) && !defined(__forceinline__)
#define __forceinline__ inline __attribute__((always_inline))
#endif

namespace broach {

constexpr unsigned kWarpLanes = 32;

/// Static shared memory of a kernel that has none.
struct NoShared {};

/// Where a thread stands in its block and grid.
struct Thread {
#if defined(BROACH_HOST)
  BroachHostThread* host;
  BROACH_DEVICE unsigned index() const { return host->thread; }
  BROACH_DEVICE unsigned block_threads() const { return host->block_threads; }
  BROACH_DEVICE unsigned block_x() const { return host->block[0]; }
  BROACH_DEVICE unsigned block_y() const { return host->block[1]; }
  BROACH_DEVICE unsigned block_z() const { return host->block[2]; }
  BROACH_DEVICE unsigned grid_x() const { return host->grid[0]; }
  BROACH_DEVICE unsigned grid_y() const { return host->grid[1]; }
  BROACH_DEVICE unsigned grid_z() const { return host->grid[2]; }
#else
  BROACH_DEVICE unsigned index() const { return threadIdx.x; }
  BROACH_DEVICE unsigned block_threads() const { return blockDim.x; }
  BROACH_DEVICE unsigned block_x() const { return blockIdx.x; }
  BROACH_DEVICE unsigned block_y() const { return blockIdx.y; }
  BROACH_DEVICE unsigned block_z() const { return blockIdx.z; }
  BROACH_DEVICE unsigned grid_x() const { return gridDim.x; }
  BROACH_DEVICE unsigned grid_y() const { return gridDim.y; }
  BROACH_DEVICE unsigned grid_z() const { return gridDim.z; }
#endif
  BROACH_DEVICE unsigned lane() const { return index() % kWarpLanes; }
  BROACH_DEVICE unsigned warp() const { return index() / kWarpLanes; }
};

#if !defined(BROACH_HOST)
extern __shared__ __attribute__((aligned(128))) unsigned char broach_dynamic_shared[];
#endif

/// The block's dynamic shared memory, 128-byte aligned.
BROACH_DEVICE void* dynamic_shared([[maybe_unused]] Thread thread) {
#if defined(BROACH_HOST)
  return thread.host->dynamic_shared;
#else
  return broach_dynamic_shared;
#endif
}

/// Waits for every thread of the block; their writes are seen by all afterwards.
BROACH_DEVICE void sync_block([[maybe_unused]] Thread thread) {
#if defined(BROACH_HOST)
  thread.host->calls->meet(thread.host, thread.host->block_threads, nullptr, nullptr);
#else
  __syncthreads();
#endif
}

/// Adds to a counter in global memory and returns what it held: who sees count - 1 came last.
BROACH_DEVICE unsigned atomic_add(unsigned* counter, unsigned value) {
#if defined(BROACH_HOST)
  return __atomic_fetch_add(counter, value, __ATOMIC_SEQ_CST);
#else
  return atomicAdd(counter, value);
#endif
}

/// Writes `value` if the word holds `expected`; returns what it held.
BROACH_DEVICE unsigned long long atomic_exchange_if(unsigned long long* word,
                                                    unsigned long long expected,
                                                    unsigned long long value) {
#if defined(BROACH_HOST)
  __atomic_compare_exchange_n(word, &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return expected;
#else
  return atomicCAS(word, expected, value);
#endif
}

/// Adds to the word; returns what it held.
BROACH_DEVICE unsigned long long atomic_add(unsigned long long* word, unsigned long long value) {
#if defined(BROACH_HOST)
  return __atomic_fetch_add(word, value, __ATOMIC_SEQ_CST);
#else
  return atomicAdd(word, value);
#endif
}

/// Makes this thread's earlier writes to global memory visible to the grid before its later ones.
BROACH_DEVICE void fence_grid() {
#if defined(BROACH_HOST)
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
#else
  __threadfence();
#endif
}

/// Ends the launch: an error naming the reason on the host, a trap on a GPU.
BROACH_DEVICE void fail([[maybe_unused]] Thread thread, [[maybe_unused]] const char* reason,
                        [[maybe_unused]] long long value) {
#if defined(BROACH_HOST)
  thread.host->calls->fail(thread.host, reason, value);
#elif defined(BROACH_CUDA)
  printf("broach: %s: %lld\n", reason, value);
  __trap();
#else
  __builtin_trap();
#endif
}

}  // namespace broach

#if defined(BROACH_HOST)
#define BROACH_EXPORT extern "C" __attribute__((visibility("default")))
#define BROACH_GLOBAL(name, threads, Params, Shared)                                              \
  static inline void name##_body(broach::Thread thread, const Params& params, Shared& shared);    \
  BROACH_EXPORT const BroachHostRecord broach_host_record_##name;                                 \
  const BroachHostRecord broach_host_record_##name = {BROACH_HOST_MAGIC, BROACH_HOST_ABI_VERSION, \
                                                      (threads),         sizeof(Shared),          \
                                                      sizeof(Params),    {0, 0, 0}};              \
  BROACH_EXPORT void broach_host_entry_##name(BroachHostThread* thread, const void* params);      \
  void broach_host_entry_##name(BroachHostThread* thread, const void* params) {                   \
    static_assert((threads) % broach::kWarpLanes == 0, "whole warps");                            \
    name##_body(broach::Thread{thread}, *static_cast<const Params*>(params),                      \
                *static_cast<Shared*>(thread->static_shared));                                    \
  }                                                                                               \
  static inline void name##_body([[maybe_unused]] broach::Thread thread,                          \
                                 [[maybe_unused]] const Params& params,                           \
                                 [[maybe_unused]] Shared& shared)
#else
#define BROACH_GLOBAL(name, threads, Params, Shared)                                              \
  static __device__ __forceinline__ void name##_body(broach::Thread thread, const Params& params, \
                                                     Shared& shared);                             \
  extern "C" __global__ void __launch_bounds__(threads, 1) name(const Params params) {            \
    static_assert((threads) % broach::kWarpLanes == 0, "whole warps");                            \
    __shared__ __attribute__((aligned(128))) Shared shared;                                       \
    name##_body(broach::Thread{}, params, shared);                                                \
  }                                                                                               \
  static __device__ __forceinline__ void name##_body([[maybe_unused]] broach::Thread thread,      \
                                                     [[maybe_unused]] const Params& params,       \
                                                     [[maybe_unused]] Shared& shared)
#endif
