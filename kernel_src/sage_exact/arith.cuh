#pragma once

// The constants and scalar operations of sage_exact. All fp32 operations flush subnormals
// (common/ftz.cuh) except the sums of the mean, which keep them.

#include "common/e4m3.cuh"
#include "common/ftz.cuh"
#include "common/half.cuh"
#include "common/sfu.cuh"
#include "sage_exact/names.cuh"

namespace broach::sage_exact {

constexpr int kHeadDim = 128;
constexpr int kTileKeys = 64;
constexpr int kQueryGroup = 32;  ///< Query rows that share a scale.

BROACH_DEVICE float score_scale() { return float_of(0x3e0293eeu); }   // fp32(128^-1/2) log2(e)
BROACH_DEVICE float max_offset() { return float_of(0xc10ce979u); }    // -8.807: p reaches 448
BROACH_DEVICE float masked_score() { return float_of(0xca989680u); }  // -5,000,000
BROACH_DEVICE float least_max() { return float_of(0x33d6bf95u); }     // 1e-7
BROACH_DEVICE float rcp_127() { return float_of(0x3c010204u); }       // 1 / 127, to nearest
BROACH_DEVICE float widest_v() { return 1e6f; }                       // where V's range starts

constexpr float kInt8Max = 127.0f;
constexpr float kFp8Max = 2.25f;

BROACH_DEVICE float bf16_of(unsigned short bits) { return widen<Half::kBf16>(bits); }

/// a / b as the reference forms it: a times an approximate reciprocal.
BROACH_DEVICE float divide(float a, float b) {
  if constexpr (kControl == Control::kIeeeDivision) return div_rn(a, b);
  return mul_ftz(rcp_approx(b), a);
}

/// The nearest integer, ties to even, within int8; NaN gives 0.
BROACH_DEVICE int int8_of(float value) {
#if defined(BROACH_CUDA)
  int result;
  asm("cvt.rni.sat.s8.f32 %0, %1;" : "=r"(result) : "f"(value));
  return result;
#else
  if (value != value) return 0;
  if (value >= 127.0f) return 127;
  if (value <= -128.0f) return -128;
  // The unit of [2^23, 2^24) is 1.
  const float shifter = 12582912.0f;
  return static_cast<int>(sub_rn(add_rn(value, shifter), shifter));
#endif
}

/// The token that position `at` of 16 holds.
BROACH_DEVICE constexpr int token_of_position(int at) {
  // 0 1 8 9 2 3 10 11 4 5 12 13 6 7 14 15
  return at / 4 * 2 + at % 2 + at % 4 / 2 * 8;
}

}  // namespace broach::sage_exact
