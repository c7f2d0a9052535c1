#pragma once

// A barrier in shared memory that threads arrive at and wait for at different times (mbarrier).
//
// A phase ends when `count` arrivals have come; phases are 0, 1, 0, 1 ... and a wait names the one
// it waits for, so that a thread may be at most a phase behind. Chips: sm_90 and later; no host
// form.

#include "common/platform.cuh"

namespace broach {

struct alignas(8) Barrier {
  unsigned long long word;
};

#if defined(BROACH_CUDA)

BROACH_DEVICE unsigned shared_address(const void* shared) {
  return static_cast<unsigned>(__cvta_generic_to_shared(shared));
}

/// One thread's work; the others see the barrier after a block barrier that follows.
BROACH_DEVICE void barrier_init(Barrier& barrier, unsigned count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;"
               :
               : "r"(shared_address(&barrier)), "r"(count)
               : "memory");
}

/// Ends a barrier's life, so that its memory may start another.
BROACH_DEVICE void barrier_invalidate(Barrier& barrier) {
  asm volatile("mbarrier.inval.shared::cta.b64 [%0];" : : "r"(shared_address(&barrier)) : "memory");
}

BROACH_DEVICE void barrier_arrive(Barrier& barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];"
               :
               : "r"(shared_address(&barrier))
               : "memory");
}

/// Arrives once every copy that this thread has issued so far (tiles/copy.cuh) has landed.
BROACH_DEVICE void barrier_arrive_after_copies(Barrier& barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];"
               :
               : "r"(shared_address(&barrier))
               : "memory");
}

/// Returns once the phase has ended.
BROACH_DEVICE void barrier_wait(Barrier& barrier, unsigned phase) {
  unsigned ended = 0;
  while (ended == 0) {
    asm volatile(
        "{\n"
        ".reg .pred ended;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 ended, [%1], %2;\n"
        "selp.b32 %0, 1, 0, ended;\n"
        "}"
        : "=r"(ended)
        : "r"(shared_address(&barrier)), "r"(phase)
        : "memory");
  }
}

#endif

}  // namespace broach
