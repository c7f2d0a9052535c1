#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "kernel_src/common/exp.cuh"
#include "kernel_src/common/half.cuh"
#include "kernel_src/common/tanh.cuh"
#include "kernel_src/tiles/matrix_step_model.cuh"

namespace broach::test {

/// tile64 as docs/numerics.md words it, one (row, query head) at a time: no tiles in flight, no
/// lanes, no fragments. It shares with the kernels the model of the step, the portable exponential
/// and tanh, and the 16-bit conversions, each of which has its own test.
struct Tile64Reference {
  Half half = Half::kBf16;
  bool p32 = false;
  bool softcap_on = false;
  float scale = 1.0F;
  float softcap = 0.0F;
  bool two_k8 = false;  ///< sm_80's step.

  struct Row {
    std::span<const std::uint16_t> q;                  ///< [D]
    std::vector<std::span<const std::uint16_t>> k, v;  ///< By position; [D] each.
    int first = 0, last = 0;                           ///< Seen positions, inclusive.
    bool has_sink = false;
    float sink = 0.0F;
  };

  /// The output as fp32 before its rounding, [D]; `tiles` is how many were folded.
  std::vector<float> attend(const Row& row) const {
    const std::size_t dims = row.q.size();
    constexpr float kLowest = -std::numeric_limits<float>::infinity();
    float maximum = kLowest;
    float total = 0.0F;
    std::vector<float> out(dims, 0.0F);
    for (int tile = row.first / 64; tile <= row.last / 64; ++tile) {
      float scores[64];
      float tile_maximum = kLowest;
      for (int j = 0; j < 64; ++j) {
        const int key = tile * 64 + j;
        scores[j] = kLowest;
        if (key < row.first || key > row.last) continue;
        scores[j] = score(row.q, row.k[static_cast<std::size_t>(key)]);
        if (scores[j] > tile_maximum) tile_maximum = scores[j];
      }
      float weights[64];
      for (int j = 0; j < 64; ++j) weights[j] = exp32(scores[j] - tile_maximum);
      float classes[4];
      for (int c = 0; c < 4; ++c) {
        classes[c] = 0.0F;
        for (int n = 0; n < 8; ++n)
          classes[c] += weights[8 * n + 2 * c] + weights[8 * n + 2 * c + 1];
      }
      const float tile_total = (classes[0] + classes[1]) + (classes[2] + classes[3]);
      const float next = tile_maximum > maximum ? tile_maximum : maximum;
      const float a = exp32(maximum - next);
      const float b = exp32(tile_maximum - next);
      total = __builtin_fmaf(total, a, tile_total * b);
      for (std::size_t d = 0; d < dims; ++d) {
        const float part = tile_value(row, tile, d, weights);
        const float scaled = part * b;
        out[d] = __builtin_fmaf(out[d], a, scaled);
      }
      maximum = next;
    }
    if (row.has_sink) {
      const float next = row.sink > maximum ? row.sink : maximum;
      const float a = exp32(maximum - next);
      total = __builtin_fmaf(total, a, exp32(row.sink - next));
      for (float& value : out) value *= a;
    }
    for (float& value : out) value /= total;
    return out;
  }

  std::uint16_t rounded(float value) const {
    return half == Half::kBf16 ? narrow<Half::kBf16>(value) : narrow<Half::kF16>(value);
  }
  float widened(std::uint16_t bits) const {
    return half == Half::kBf16 ? widen<Half::kBf16>(bits) : widen<Half::kF16>(bits);
  }

 private:
  std::uint32_t step(const std::uint16_t* a, const std::uint16_t* b, std::uint32_t c) const {
    using tiles::matrix_step;
    if (half == Half::kBf16) {
      return two_k8 ? matrix_step<tiles::Bf16Format, tiles::TwoK8>(a, 1, b, 1, c)
                    : matrix_step<tiles::Bf16Format, tiles::OneK16>(a, 1, b, 1, c);
    }
    return two_k8 ? matrix_step<tiles::F16Format, tiles::TwoK8>(a, 1, b, 1, c)
                  : matrix_step<tiles::F16Format, tiles::OneK16>(a, 1, b, 1, c);
  }

  float score(std::span<const std::uint16_t> q, std::span<const std::uint16_t> k) const {
    std::uint32_t dot = 0;
    for (std::size_t d = 0; d < q.size(); d += 16) dot = step(&q[d], &k[d], dot);
    const float s = std::bit_cast<float>(dot) * scale;
    return softcap_on ? softcap * tanh32(s / softcap) : s;
  }

  float tile_value(const Row& row, int tile, std::size_t d, const float (&weights)[64]) const {
    std::uint32_t sum = 0;
    for (int first = 0; first < 64; first += 16) {
      std::uint16_t high[16];
      std::uint16_t low[16];
      std::uint16_t values[16];
      for (int j = 0; j < 16; ++j) {
        const int key = tile * 64 + first + j;
        const float weight = weights[first + j];
        high[j] = rounded(weight);
        low[j] = rounded(weight - widened(high[j]));
        const bool seen = key >= row.first && key <= row.last;
        values[j] = seen ? row.v[static_cast<std::size_t>(key)][d] : std::uint16_t{0};
      }
      sum = step(high, values, sum);
      if (p32) sum = step(low, values, sum);
    }
    return std::bit_cast<float>(sum);
  }
};

}  // namespace broach::test
