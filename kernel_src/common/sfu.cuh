#pragma once

// The special-function unit's approximations, for kernels whose contract is one chip generation's
// bits: the instruction on NVIDIA, sm_90's exact model elsewhere. Other NVIDIA generations may hold
// other tables.

#include "common/ops.cuh"
#include "common/platform.cuh"
#if !defined(BROACH_CUDA)
#include "common/sfu_model.cuh"
#endif

namespace broach {

/// 2^x, within 2 ulps; subnormals are zero on either side.
BROACH_DEVICE float ex2_approx(float x) {
#if defined(BROACH_CUDA)
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
#else
  return float_of(sfu::ex2(bits_of(x)));
#endif
}

/// 1 / x, within an ulp; subnormals are zero on either side.
BROACH_DEVICE float rcp_approx(float x) {
#if defined(BROACH_CUDA)
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
#else
  return float_of(sfu::rcp(bits_of(x)));
#endif
}

}  // namespace broach
