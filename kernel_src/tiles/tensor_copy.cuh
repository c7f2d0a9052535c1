#pragma once

// Copies of boxes of a tensor from global to shared memory by the tensor copy engine (TMA).
//
// A tensor map describes a tensor of 16-bit elements of five dims and the box that one copy moves:
// 64 columns (128 bytes), rows of them, and swizzled tiles of rows. The 16-byte units of a row are
// permuted within 8 rows as tiles/swizzle.cuh has it, by the shared address, so that boxes of 8
// rows and more may lie one behind another in a tile. What lies outside the tensor arrives as
// zeros. A copy completes on a barrier that expects its bytes (barrier_expect). Chips: sm_90a; no
// host form.

#include "tiles/barrier.cuh"

namespace broach {

#if defined(BROACH_CUDA)

/// Arrives, and lets the phase end only when `bytes` more have been copied.
BROACH_DEVICE void barrier_expect(Barrier& barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
               :
               : "r"(shared_address(&barrier)), "r"(bytes)
               : "memory");
}

/// Makes barriers that this thread has started visible to the copy engine.
BROACH_DEVICE void barrier_fence_start() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/// Where a box starts in its tensor.
struct BoxAt {
  int column = 0;
  int row = 0;
  int tile = 0;
  int head = 0;
  int slot = 0;
};

/// Starts the copy of a box; one thread's work. `map` lies in the kernel's parameters.
///
/// Shapes:  `shared` 1,024-byte aligned.
BROACH_DEVICE void copy_box(void* shared, const void* map, Barrier& barrier, const BoxAt& at) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%3, %4, %5, %6, %7}], [%2];"
      :
      : "r"(shared_address(shared)), "l"(map), "r"(shared_address(&barrier)), "r"(at.column),
        "r"(at.row), "r"(at.tile), "r"(at.head), "r"(at.slot)
      : "memory");
}

#endif

}  // namespace broach
