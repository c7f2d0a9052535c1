#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "kernel_src/common/half.cuh"
#include "kernel_src/tiles/mma_step_model.cuh"

namespace broach::test {

/// What the references of arithmetics made of MMA steps share: one row's inputs, chains of
/// steps, the 16-bit conversions. The model of the step and the conversions are the kernels', and
/// have their own tests; no tile, lane or fragment is.
struct StepReference {
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

    bool sees(int key) const { return key >= first && key <= last; }
  };

  std::uint16_t rounded(float value) const {
    return half == Half::kBf16 ? narrow<Half::kBf16>(value) : narrow<Half::kF16>(value);
  }
  float widened(std::uint16_t bits) const {
    return half == Half::kBf16 ? widen<Half::kBf16>(bits) : widen<Half::kF16>(bits);
  }

  /// The accumulator's bits after one step of 16 products.
  std::uint32_t step(const std::uint16_t* a, const std::uint16_t* b, std::uint32_t c) const {
    using tiles::mma_step;
    if (half == Half::kBf16) {
      return two_k8 ? mma_step<tiles::Bf16Format, tiles::TwoK8>(a, 1, b, 1, c)
                    : mma_step<tiles::Bf16Format, tiles::OneK16>(a, 1, b, 1, c);
    }
    return two_k8 ? mma_step<tiles::F16Format, tiles::TwoK8>(a, 1, b, 1, c)
                  : mma_step<tiles::F16Format, tiles::OneK16>(a, 1, b, 1, c);
  }

  /// A chain of steps over dims begin .. end - 1, from +0.
  float dot(std::span<const std::uint16_t> q, std::span<const std::uint16_t> k, std::size_t begin,
            std::size_t end) const {
    std::uint32_t sum = 0;
    for (std::size_t d = begin; d < end; d += 16) sum = step(&q[d], &k[d], sum);
    return std::bit_cast<float>(sum);
  }

  /// pv[d] of a tile that begins at `first_key`: a chain of steps over its keys, from +0.
  float tile_value(const Row& row, int first_key, std::span<const float> weights,
                   std::size_t d) const {
    std::uint32_t sum = 0;
    for (std::size_t first = 0; first < weights.size(); first += 16) {
      std::uint16_t high[16];
      std::uint16_t low[16];
      std::uint16_t values[16];
      for (std::size_t j = 0; j < 16; ++j) {
        const int key = first_key + static_cast<int>(first + j);
        const float weight = weights[first + j];
        high[j] = rounded(weight);
        low[j] = rounded(weight - widened(high[j]));
        values[j] = row.sees(key) ? row.v[static_cast<std::size_t>(key)][d] : std::uint16_t{0};
      }
      sum = step(high, values, sum);
      if (p32) sum = step(low, values, sum);
    }
    return std::bit_cast<float>(sum);
  }
};

}  // namespace broach::test
