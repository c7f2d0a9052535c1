#pragma once

#include <limits>
#include <vector>

#include "kernel_src/common/exp.cuh"
#include "kernel_src/common/tanh.cuh"
#include "tests/kernel_src/step_reference.hpp"

namespace broach::test {

/// tile64 as docs/families/window_rows_tile64.md words it, one (row, query head) at a time.
struct Tile64Reference : StepReference {
  /// The output as fp32 before its rounding, [D].
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
        if (!row.sees(key)) continue;
        const float s = dot(row.q, row.k[static_cast<std::size_t>(key)], 0, dims) * scale;
        scores[j] = softcap_on ? softcap * tanh32(s / softcap) : s;
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
        const float part = tile_value(row, tile * 64, weights, d);
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
};

}  // namespace broach::test
