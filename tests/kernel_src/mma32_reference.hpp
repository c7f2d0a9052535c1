#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "kernel_src/common/exp.cuh"
#include "kernel_src/common/tanh.cuh"
#include "tests/kernel_src/step_reference.hpp"

namespace broach::test {

/// mma32 as docs/families/window_rows_mma32.md words it, one (row, query head) at a time.
struct Mma32Reference : StepReference {
  /// The output as fp32 before its rounding, [D].
  std::vector<float> attend(const Row& row) const {
    const std::size_t dims = row.q.size();
    float m = -std::numeric_limits<float>::infinity();
    float l = 0.0F;
    std::vector<float> o(dims, 0.0F);
    for (int first_key = row.first / 32 * 32; first_key <= row.last; first_key += 32) {
      std::vector<int> seen;
      for (int j = 0; j < 32; ++j) {
        if (row.sees(first_key + j)) seen.push_back(j);
      }
      float scores[32];
      float next = m;
      for (const int j : seen) {
        scores[j] = score(row, first_key + j);
        if (scores[j] > next) next = scores[j];
      }
      float weights[32] = {};
      for (const int j : seen) weights[j] = exp32(scores[j] - next);
      const float a = exp32(m - next);
      const auto pair = [&](int class_, int n) {
        return weights[8 * n + 2 * class_] + weights[8 * n + 2 * class_ + 1];
      };
      const auto sum_of = [&](int class_) {
        return ((pair(class_, 0) + pair(class_, 1)) + pair(class_, 2)) + pair(class_, 3);
      };
      l = __builtin_fmaf(l, a, (sum_of(0) + sum_of(1)) + (sum_of(2) + sum_of(3)));
      for (std::size_t d = 0; d < dims; ++d) {
        o[d] = __builtin_fmaf(o[d], a, tile_value(row, first_key, weights, d));
      }
      m = next;
    }
    if (row.has_sink) {
      const float next = std::max(m, row.sink);
      const float a = exp32(m - next);
      l = __builtin_fmaf(l, a, exp32(row.sink - next));
      for (float& value : o) value *= a;
    }
    for (float& value : o) value /= l;
    return o;
  }

 private:
  float score(const Row& row, int key) const {
    const auto k = row.k[static_cast<std::size_t>(key)];
    float sum = dot(row.q, k, 0, std::min<std::size_t>(128, row.q.size()));
    for (std::size_t slice = 128; slice < row.q.size(); slice += 128) {
      sum += dot(row.q, k, slice, std::min(slice + 128, row.q.size()));
    }
    const float s = sum * scale;
    return softcap_on ? softcap * tanh32(s / softcap) : s;
  }
};

}  // namespace broach::test
