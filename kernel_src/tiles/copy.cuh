#pragma once

// Asynchronous copies from global to shared memory, 16 bytes a thread and call: cp.async on NVIDIA.
// The host copies at once, which is one of the orders that the GPU may choose.
//
// A thread's copies are grouped by copy_commit; copy_wait<n> returns when all but its n latest
// groups have arrived. Other threads see them after a block barrier that follows.

#include "common/platform.cuh"

namespace broach {

/// Copies 16 bytes, or writes zeros and reads nothing when `present` is false.
///
/// Shapes:  both pointers 16-byte aligned; `from` must be a valid address of any element even when
///          nothing is read.
BROACH_DEVICE void copy_16_bytes(void* shared, const void* from, bool present) {
#if defined(BROACH_CUDA)
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(address), "l"(__cvta_generic_to_global(from)), "r"(present ? 16 : 0)
               : "memory");
#else
  if (present) {
    __builtin_memcpy(shared, from, 16);
  } else {
    __builtin_memset(shared, 0, 16);
  }
#endif
}

BROACH_DEVICE void copy_commit() {
#if defined(BROACH_CUDA)
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

template <int kPending>
BROACH_DEVICE void copy_wait() {
#if defined(BROACH_CUDA)
  asm volatile("cp.async.wait_group %0;" : : "n"(kPending) : "memory");
#endif
}

}  // namespace broach
