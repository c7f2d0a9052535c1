#pragma once

// What a kernel of your own may use. One source for three compilers: NVRTC (or nvcc), hiprtc (or
// hipcc), and the host's C++ compiler. No standard or toolkit header is included.
//
//   #include "broach/kernel.cuh"
//   struct ScaleParams { float* x; float by; };
//   BROACH_KERNEL(acme_scale, 256, ScaleParams, broach::NoShared) {
//     params.x[thread.block_x() * 256 + thread.index()] *= params.by;
//   }
//
// `acme_scale` becomes an extern "C" function whose only parameter is the struct, by value. Its
// body sees `thread` (broach::BlockThread), `params` (const ScaleParams&) and `shared` (the static
// shared memory, a trivial struct; broach::NoShared is none). What every launch has is left beside
// the function in the binary; a launch that has something else is refused before the driver sees
// it.
//
//   BROACH_KERNEL(name, threads, Params, Shared)        a block of one dimension
//   BROACH_KERNEL_OF(name, geometry, Params, Shared)    any: broach::block(32,
//   4).dynamic_shared(98304) BROACH_LAUNCH_GEOMETRY(name, geometry);             the same beside a
//   plain __global__ function,
//                                                       extern "C", with whatever parameters it has
//   BROACH_CONSTANT float acme_table[64];               set by name before launches; global scope
//   BROACH_VARIABLE unsigned acme_count;                likewise, and kernels may write it
//
// Under these names come, from files that a kernel may include alone:
//   common/platform.cuh   Thread, dynamic_shared, sync_block, atomic_add, atomic_exchange_if,
//                         fence_grid, fail; BROACH_DEVICE for functions, BROACH_UNROLL for loops
//   common/ops.cuh        fma_rn, mul_rn, add_rn, sub_rn, div_rn in float and double: one IEEE
//                         operation each, never fused; bits_of, float_of, double_of
//   common/warp.cuh       sync_warp, shuffle, shuffle_xor, ballot, any, all, sum_tree, max_warp
//   common/half.cuh       bf16 and f16 as bits: widen, narrow, narrow_pair
//   common/load.cuh       16-byte loads and stores of them: Halves8, load8, shared8, share8
//
// A warp is 32 consecutive threads everywhere, on AMD's 64-wide waves too.

#include "broach/launch_geometry.h"
#include "common/half.cuh"
#include "common/load.cuh"
#include "common/ops.cuh"
#include "common/platform.cuh"
#include "common/warp.cuh"

#if defined(BROACH_HOST)
#define BROACH_CONSTANT_FUNCTION constexpr
#else
#define BROACH_CONSTANT_FUNCTION __host__ __device__ constexpr
#endif

namespace broach {

/// What every launch of a kernel has.
///
/// Units:   threads, bytes, blocks; a cluster of 0 blocks is none.
struct Geometry {
  unsigned block_x = 1, block_y = 1, block_z = 1;
  unsigned dynamic_shared_bytes = 0;
  unsigned cluster_x = 0, cluster_y = 0, cluster_z = 0;

  BROACH_CONSTANT_FUNCTION unsigned threads() const { return block_x * block_y * block_z; }

  /// Dynamic shared memory, also beyond 48 KiB.
  BROACH_CONSTANT_FUNCTION Geometry dynamic_shared(unsigned bytes) const {
    Geometry with = *this;
    with.dynamic_shared_bytes = bytes;
    return with;
  }

  /// Dynamic shared memory of a size that each launch says.
  BROACH_CONSTANT_FUNCTION Geometry dynamic_shared_at_launch() const {
    return dynamic_shared(BROACH_GEOMETRY_AT_LAUNCH);
  }

  /// Clusters of blocks, which NVIDIA's chips have from sm_90 on.
  BROACH_CONSTANT_FUNCTION Geometry cluster(unsigned x, unsigned y = 1, unsigned z = 1) const {
    Geometry with = *this;
    with.cluster_x = x;
    with.cluster_y = y;
    with.cluster_z = z;
    return with;
  }
};

/// A block of so many threads.
BROACH_CONSTANT_FUNCTION Geometry block(unsigned x, unsigned y = 1, unsigned z = 1) {
  Geometry geometry;
  geometry.block_x = x;
  geometry.block_y = y;
  geometry.block_z = z;
  return geometry;
}

BROACH_CONSTANT_FUNCTION BroachLaunchGeometry record_of(const Geometry& g) {
  return BroachLaunchGeometry{BROACH_GEOMETRY_MAGIC,
                              BROACH_GEOMETRY_VERSION,
                              {g.block_x, g.block_y, g.block_z},
                              g.dynamic_shared_bytes,
                              {g.cluster_x, g.cluster_y, g.cluster_z},
                              {0, 0, 0}};
}

/// Where a thread stands in its block and grid. It is the Thread that the functions above take. A
/// function of your own takes BlockThread where a block has more than one dimension: as a Thread
/// its index counts along x alone on a GPU.
template <unsigned kX, unsigned kY, unsigned kZ>
struct BlockThread : Thread {
  static_assert(kY * kZ == 1 || kX % kWarpLanes == 0, "a warp lies along x");

#if defined(BROACH_HOST)
  BROACH_DEVICE unsigned x() const { return host->thread % kX; }
  BROACH_DEVICE unsigned y() const { return host->thread / kX % kY; }
  BROACH_DEVICE unsigned z() const { return host->thread / (kX * kY); }
#else
  BROACH_DEVICE unsigned x() const { return threadIdx.x; }
  BROACH_DEVICE unsigned y() const { return threadIdx.y; }
  BROACH_DEVICE unsigned z() const { return threadIdx.z; }
#endif
  /// The thread's place in the block, x fastest.
  BROACH_DEVICE unsigned index() const {
    if constexpr (kY * kZ == 1) {
      return x();
    } else {
      return (z() * kY + y()) * kX + x();
    }
  }
  BROACH_DEVICE unsigned block_threads() const { return kX * kY * kZ; }
  BROACH_DEVICE unsigned lane() const { return index() % kWarpLanes; }
  BROACH_DEVICE unsigned warp() const { return index() / kWarpLanes; }
};

}  // namespace broach

#if defined(BROACH_HOST)
#define BROACH_CONSTANT __attribute__((visibility("default")))
#define BROACH_VARIABLE __attribute__((visibility("default")))
#define BROACH_GEOMETRY_DECLARED extern "C" __attribute__((visibility("default")))
#define BROACH_GEOMETRY_DEFINED __attribute__((used))
#else
#define BROACH_CONSTANT __constant__
#define BROACH_VARIABLE __device__
#define BROACH_GEOMETRY_DECLARED extern "C" __device__
#define BROACH_GEOMETRY_DEFINED __device__ __attribute__((used))
#endif

#define BROACH_LAUNCH_GEOMETRY(name, geometry)                                \
  BROACH_GEOMETRY_DECLARED const BroachLaunchGeometry broach_geometry_##name; \
  BROACH_GEOMETRY_DEFINED const BroachLaunchGeometry broach_geometry_##name = \
      broach::record_of(geometry)

#define BROACH_KERNEL_OF(name, geometry, Params, Shared)                                      \
  static constexpr broach::Geometry name##_geometry = geometry;                               \
  using name##_thread = broach::BlockThread<name##_geometry.block_x, name##_geometry.block_y, \
                                            name##_geometry.block_z>;                         \
  static BROACH_DEVICE void name##_kernel(name##_thread thread, const Params& params,         \
                                          Shared& shared);                                    \
  BROACH_LAUNCH_GEOMETRY(name, name##_geometry);                                              \
  BROACH_GLOBAL(name, name##_geometry.threads(), Params, Shared) {                            \
    name##_kernel(name##_thread{thread}, params, shared);                                     \
  }                                                                                           \
  static BROACH_DEVICE void name##_kernel([[maybe_unused]] name##_thread thread,              \
                                          [[maybe_unused]] const Params& params,              \
                                          [[maybe_unused]] Shared& shared)

#define BROACH_KERNEL(name, threads, Params, Shared) \
  BROACH_KERNEL_OF(name, broach::block(threads), Params, Shared)
