// y = W x: one row of 16-bit activations, 4-bit weights.
//   W[n, k] = (nibble k % 8 of word [n, k / 8], minus 8) * scale[n, k / kGroup]
// A warp takes a row of W: a lane the spans of 32 weights that lie kWarpLanes spans apart, each one
// load of 16 bytes. A span's products are summed in order and scaled once; the lanes' sums are
// added by a tree. Bytes: kDepth / 2 + 2 kDepth / kGroup a row of W, read once.

#include "broach/kernel.cuh"
#include "dtype.cuh"

constexpr unsigned kThreads = 128;
constexpr unsigned kSpan = 32;
static_assert(kDepth % kSpan == 0 && kGroup % kSpan == 0 && kDepth % kGroup == 0);

// Shapes: weights [rows, kDepth / 8]; scales [rows, kDepth / kGroup]; x [kDepth]; y [rows];
//         weights and x 16-byte aligned.
struct Gemv4Params {
  const unsigned* weights;
  const unsigned short* scales;
  const unsigned short* x;
  unsigned short* y;
  unsigned rows;
};

BROACH_KERNEL(acme_gemv4, kThreads, Gemv4Params, broach::NoShared) {
  using namespace broach;
  const unsigned row = thread.block_x() * (kThreads / kWarpLanes) + thread.warp();
  if (row >= params.rows) return;  // Whole warps alone.
  const unsigned* const weights =
      params.weights + static_cast<unsigned long long>(row) * (kDepth / 8);
  const unsigned short* const scales =
      params.scales + static_cast<unsigned long long>(row) * (kDepth / kGroup);
  float sum[1] = {0.0f};
  for (unsigned span = thread.lane(); span < kDepth / kSpan; span += kWarpLanes) {
    const Halves8 packed = load8(reinterpret_cast<const unsigned short*>(weights + span * 4));
    float products = 0.0f;
    BROACH_UNROLL
    for (unsigned word = 0; word < 4; ++word) {
      const Halves8 x = load8(params.x + span * kSpan + word * 8);
      BROACH_UNROLL
      for (unsigned i = 0; i < 8; ++i) {
        const int weight = static_cast<int>(packed.words[word] >> (4 * i) & 15u) - 8;
        products = fma_rn(static_cast<float>(weight), widen<kHalf>(x, i), products);
      }
    }
    sum[0] = fma_rn(products, widen<kHalf>(scales[span * kSpan / kGroup]), sum[0]);
  }
  const float y = sum_tree<kWarpLanes>(thread, sum);
  if (thread.lane() == 0) params.y[row] = narrow<kHalf>(y);
}
