#pragma once

// window_rows prefill, arith=tile64 and tile64_ex2, by producer and consumer warpgroups:
// tile64_prefill.cuh's bits. Chips: sm_90a.

#include "window_rows/prefill_pipeline.cuh"

#if defined(BROACH_CUDA)
/// The parameters, aligned as the tensor maps in them have to be; they are read in place.
struct alignas(64) BroachWindowRowsTensorPrefillInPlace : BroachWindowRowsTensorPrefill {};

extern "C" __global__ void __launch_bounds__(broach::window_rows::kPipelineThreads, 1)
    broach_window_rows_tile64_prefill(
        const __grid_constant__ BroachWindowRowsTensorPrefillInPlace params) {
  broach::window_rows::prefill_pipeline(broach::Thread{}, params);
}
#endif
