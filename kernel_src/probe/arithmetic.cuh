#pragma once

// Evaluates every function that kernels' bits rest on, so that a device's answers can be compared
// with the host's: out[i] belongs to the fp32 number whose bits are first + i * step.
//
// Block: 256 threads, one argument each. grid = (count / 256, 1, 1). Chips: any. Every NaN is
// written as 0x7fc00000 (its double's high half as 0x7ff80000), since its payload is no promise.

#include "common/exp.cuh"
#include "common/half.cuh"
#include "common/sincos.cuh"
#include "common/sqrt.cuh"
#include "common/tanh.cuh"
#include "common/warp.cuh"
#include "probe/arithmetic.h"

namespace broach::probe {

constexpr int kThreads = 256;

BROACH_DEVICE unsigned settled(float value) {
  return value != value ? 0x7fc00000u : bits_of(value);
}
BROACH_DEVICE unsigned long long settled(double value) {
  return value != value ? 0x7ff8000000000000ull : bits_of(value);
}

/// Everything that needs no other lane.
BROACH_DEVICE BroachProbeValues values_of(unsigned bits) {
  const float x = float_of(bits);
  const float below = float_of(bits | 0x80000000u);  // exp's domain.
  const float y = float_of(bits * 2654435761u);      // A second operand.
  // Within the last bits of x in fp64, where rounding twice would show.
  const double wide = double_of(bits_of(static_cast<double>(x)) ^ (bits & 7u));
  BroachProbeValues values;
  values.exp64 = settled(exp64(static_cast<double>(below)));
  values.tanh64 = settled(tanh64(static_cast<double>(x)));
  values.exp32 = settled(exp32(below));
  values.tanh32 = settled(tanh32(x));
  values.fused = settled(fma_rn(x, y, below));
  values.separate = settled(add_rn(mul_rn(x, y), below));
  values.quotient = settled(div_rn(x, y));
  values.sum = 0;
  values.wide_bf16 = settled(widen<Half::kBf16>(static_cast<unsigned short>(bits >> 16)));
  values.wide_f16 = settled(widen<Half::kF16>(static_cast<unsigned short>(bits >> 16)));
  const SinCos turned = sincos32(x);
  values.sine = settled(turned.sin);
  values.cosine = settled(turned.cos);
  values.root = settled(sqrt32(x));
  values.inverse_root = settled(div_rn(1.0f, sqrt32(x)));
  values.bf16 = narrow<Half::kBf16>(x);
  values.f16 = narrow<Half::kF16>(x);
  values.bf16_from_double = narrow<Half::kBf16>(wide);
  values.f16_from_double = narrow<Half::kF16>(wide);
  return values;
}

}  // namespace broach::probe

BROACH_GLOBAL(broach_probe_arithmetic, broach::probe::kThreads, BroachProbe, broach::NoShared) {
  using namespace broach;
  const unsigned i = thread.block_x() * probe::kThreads + thread.index();
  const unsigned bits = params.first + i * params.step;
  BroachProbeValues values = probe::values_of(bits);
  // A tree over the warp of numbers near 1, so that every addition rounds.
  float parts[4];
  BROACH_UNROLL
  for (unsigned p = 0; p < 4; ++p) {
    parts[p] = float_of(0x3f800000u | ((bits * (2 * p + 1)) & 0x007fffffu));
  }
  const float most = max_warp(thread, parts[1]);
  values.sum = bits_of(add_rn(sum_tree<32>(thread, parts), most));
  params.out[i] = values;
}
