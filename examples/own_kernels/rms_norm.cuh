// Fused residual and RMS norm, a block a row:
//   h = round16(x + residual), stored over the residual
//   out = round16(h * (1 / sqrt(mean h^2 + epsilon)) * weight)
// A thread takes vectors of 8 values, kThreads apart, and sums their squares in order; the warps'
// sums are added by a tree, then the block's in order. Every operation is one rounding of fp32.

#include "broach/kernel.cuh"
#include "common/sqrt.cuh"
#include "dtype.cuh"

constexpr unsigned kThreads = 256;
constexpr unsigned kVectors = kDim / 8;
constexpr unsigned kRounds = (kVectors + kThreads - 1) / kThreads;
static_assert(kDim % 8 == 0);

// Shapes: x, residual, out [rows, kDim]; weight [kDim]; 16-byte aligned.
struct RmsNormParams {
  const unsigned short* x;
  unsigned short* residual;
  const unsigned short* weight;
  unsigned short* out;
  float epsilon;
};

struct RmsNormShared {
  float part[kThreads / broach::kWarpLanes];
  float scale;
};

BROACH_KERNEL(acme_rms_norm, kThreads, RmsNormParams, RmsNormShared) {
  using namespace broach;
  const unsigned long long row = static_cast<unsigned long long>(thread.block_x()) * kDim;
  Halves8 kept[kRounds];
  float squares[1] = {0.0f};
  BROACH_UNROLL
  for (unsigned round = 0; round < kRounds; ++round) {
    const unsigned vector = round * kThreads + thread.index();
    if (vector >= kVectors) continue;
    const Halves8 x = load8(params.x + row + vector * 8);
    // The residual is written below: not by the path for what is only read.
    const Halves8 residual = shared8(params.residual + row + vector * 8);
    BROACH_UNROLL
    for (unsigned i = 0; i < 8; i += 2) {
      const float low = add_rn(widen<kHalf>(x, i), widen<kHalf>(residual, i));
      const float high = add_rn(widen<kHalf>(x, i + 1), widen<kHalf>(residual, i + 1));
      kept[round].words[i / 2] = narrow_pair<kHalf>(low, high);
    }
    BROACH_UNROLL
    for (unsigned i = 0; i < 8; ++i) {
      const float h = widen<kHalf>(kept[round], i);
      squares[0] = fma_rn(h, h, squares[0]);
    }
    share8(params.residual + row + vector * 8, kept[round]);
  }
  const float of_warp = sum_tree<kWarpLanes>(thread, squares);
  if (thread.lane() == 0) shared.part[thread.warp()] = of_warp;
  sync_block(thread);
  if (thread.index() == 0) {
    float sum = 0.0f;
    for (const float part : shared.part) sum = add_rn(sum, part);
    const float mean = mul_rn(sum, 1.0f / static_cast<float>(kDim));
    shared.scale = div_rn(1.0f, sqrt32(add_rn(mean, params.epsilon)));
  }
  sync_block(thread);
  const float scale = shared.scale;
  BROACH_UNROLL
  for (unsigned round = 0; round < kRounds; ++round) {
    const unsigned vector = round * kThreads + thread.index();
    if (vector >= kVectors) continue;
    const Halves8 weight = load8(params.weight + vector * 8);
    Halves8 out;
    BROACH_UNROLL
    for (unsigned i = 0; i < 8; i += 2) {
      const float low =
          mul_rn(mul_rn(widen<kHalf>(kept[round], i), scale), widen<kHalf>(weight, i));
      const float high =
          mul_rn(mul_rn(widen<kHalf>(kept[round], i + 1), scale), widen<kHalf>(weight, i + 1));
      out.words[i / 2] = narrow_pair<kHalf>(low, high);
    }
    share8(params.out + row + vector * 8, out);
  }
}
