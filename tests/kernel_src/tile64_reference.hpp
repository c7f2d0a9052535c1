#pragma once

#include <limits>
#include <vector>

#include "kernel_src/common/exp.cuh"
#include "kernel_src/common/sfu_model.cuh"
#include "kernel_src/common/tanh.cuh"
#include "tests/kernel_src/step_reference.hpp"

namespace broach::test {

/// tile64 and tile64_ex2 as docs/families/window_rows_tile64.md words them, one (row, query head)
/// at a time.
struct Tile64Reference : StepReference {
  bool ex2 = false;  ///< tile64_ex2: the special-function unit's exponential.

  static constexpr float kLog2E = 0x1.715476p+0F;

  /// What a score is multiplied by in the exponent.
  float factor() const { return !ex2 ? 1.0F : softcap_on ? kLog2E : scale * kLog2E; }
  /// A score as the maximum takes it.
  float exponent(float score) const { return ex2 ? score * factor() : score; }
  float exponential(float d) const { return ex2 ? float_of(sfu::ex2(bits_of(d))) : exp32(d); }
  float weight(float score, float maximum) const {
    return exponential(ex2 ? __builtin_fmaf(score, factor(), -maximum) : score - maximum);
  }

  /// The score of a key, before the exponent's factor.
  float score(const Row& row, int key) const {
    const float product = dot(row.q, row.k[static_cast<std::size_t>(key)], 0, row.q.size());
    if (softcap_on) return softcap * tanh32(product * scale / softcap);
    return ex2 ? product : product * scale;
  }

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
        if (!row.sees(key)) continue;
        scores[j] = score(row, key);
        if (exponent(scores[j]) > tile_maximum) tile_maximum = exponent(scores[j]);
      }
      float weights[64];
      for (int j = 0; j < 64; ++j) {
        weights[j] = row.sees(tile * 64 + j) ? weight(scores[j], tile_maximum) : 0.0F;
      }
      float classes[4];
      for (int c = 0; c < 4; ++c) {
        classes[c] = 0.0F;
        for (int n = 0; n < 8; ++n)
          classes[c] += weights[8 * n + 2 * c] + weights[8 * n + 2 * c + 1];
      }
      const float tile_total = (classes[0] + classes[1]) + (classes[2] + classes[3]);
      const float next = tile_maximum > maximum ? tile_maximum : maximum;
      const float a = exponential(maximum - next);
      const float b = exponential(tile_maximum - next);
      total = __builtin_fmaf(total, a, tile_total * b);
      for (std::size_t d = 0; d < dims; ++d) {
        const float part = tile_value(row, tile * 64, weights, d);
        const float scaled = part * b;
        out[d] = __builtin_fmaf(out[d], a, scaled);
      }
      maximum = next;
    }
    if (row.has_sink) {
      const float sink = ex2 ? row.sink * kLog2E : row.sink;
      const float next = sink > maximum ? sink : maximum;
      const float a = exponential(maximum - next);
      total = __builtin_fmaf(total, a, exponential(sink - next));
      for (float& value : out) value *= a;
    }
    for (float& value : out) value /= total;
    return out;
  }
};

}  // namespace broach::test
