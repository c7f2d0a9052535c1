#pragma once

// Bulk copies from global to shared memory by the copy engine: one thread issues a copy of many
// bytes, and a barrier (tiles/barrier.cuh) counts them in. Chips: sm_90 and later; no host form.
//
// A phase that waits for copies is told their bytes by the arrival that opens it, before any of the
// copies is issued.

#include "common/platform.cuh"
#include "tiles/barrier.cuh"

namespace broach {

#if defined(BROACH_CUDA)

/// Arrives, and holds the phase until `bytes` more have come.
BROACH_DEVICE void barrier_arrive_expecting(Barrier& barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
               :
               : "r"(shared_address(&barrier)), "r"(bytes)
               : "memory");
}

/// Copies `bytes`, counted in at `barrier`.
///
/// Shapes:  both pointers 16-byte aligned, `bytes` a multiple of 16.
BROACH_DEVICE void bulk_copy(void* shared, const void* from, unsigned bytes, Barrier& barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
      :
      : "r"(shared_address(shared)), "l"(__cvta_generic_to_global(from)), "r"(bytes),
        "r"(shared_address(&barrier))
      : "memory");
}

/// Makes barriers that this thread has initialised visible to the copy engine.
BROACH_DEVICE void barrier_init_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

#endif

}  // namespace broach
