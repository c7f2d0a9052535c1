#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "broach/qk_rows.hpp"
#include "common/half.cuh"
#include "common/sincos.cuh"
#include "common/sqrt.cuh"
#include "qk_rows/params.h"

namespace broach::test {

inline float widened(Dtype dtype, std::uint16_t bits) {
  return dtype == Dtype::kBf16 ? widen<Half::kBf16>(bits) : widen<Half::kF16>(bits);
}
inline std::uint16_t narrowed(Dtype dtype, float value) {
  return dtype == Dtype::kBf16 ? narrow<Half::kBf16>(value) : narrow<Half::kF16>(value);
}

/// The tensors of a launch over rows of several slots. Strides leave gaps that nobody may touch.
struct QkTensors {
  static constexpr std::uint16_t kUntouched = 0x4d3b;

  QkRowsShape shape;
  int dims() const { return static_cast<int>(shape.head_dim); }
  int rope() const { return static_cast<int>(shape.rope_dim); }
  int ratio() const { return static_cast<int>(shape.gqa_ratio); }
  int layout() const { return static_cast<int>(shape.kv_layout.kind); }
  int unit() const { return static_cast<int>(shape.kv_layout.length); }

  int kv_heads;
  int slots = 3;
  int length;  ///< Positions of a slot, linear and paged.
  std::vector<std::uint16_t> q, k, v, q_out, cache_k, cache_v;
  std::vector<float> inverse, q_norm, k_norm, q_scale;
  std::vector<int> positions, row_slots, table;
  BroachQkRows params{};

  QkTensors(const QkRowsShape& of, int kv, std::vector<int> at, std::vector<int> in_slots,
            int positions_held, std::uint32_t seed = 1)
      : shape(of),
        kv_heads(kv),
        length(positions_held),
        positions(std::move(at)),
        row_slots(std::move(in_slots)) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    const auto rows = positions.size();
    const auto d = static_cast<std::size_t>(dims());
    const auto fill = [&](std::vector<std::uint16_t>& values, std::size_t count) {
      values.resize(count);
      for (auto& value : values) value = narrowed(shape.dtype, normal(random));
    };
    const auto heads = static_cast<std::size_t>(kv_heads * ratio());
    const auto kvs = static_cast<std::size_t>(kv_heads);
    fill(q, rows * (heads * d + 16));
    fill(k, rows * (kvs * d + 24));
    fill(v, rows * (kvs * d + 8));
    q_out.assign(rows * (heads * d + 8), kUntouched);
    for (int j = 0; j < rope() / 2; ++j) {
      inverse.push_back(static_cast<float>(std::pow(10000.0, -2.0 * j / rope())));
    }
    for (std::size_t i = 0; i < d; ++i) {
      q_norm.push_back(1.0F + 0.1F * normal(random));
      k_norm.push_back(1.0F + 0.1F * normal(random));
    }
    for (std::size_t i = 0; i < heads * d; ++i) q_scale.push_back(1.0F + 0.2F * normal(random));
    const int cells = layout() == 0 ? length : unit();
    const int pages = layout() == 2 ? slots * (length / unit()) : 0;
    for (int i = 0; i < pages; ++i) table.push_back((i * 5 + 3) % pages);
    const auto held = static_cast<std::size_t>(layout() == 2 ? pages : slots);
    cache_k.assign(held * static_cast<std::size_t>(cells) * kvs * d, kUntouched);
    cache_v = cache_k;

    params.q = q.data();
    params.k = k.data();
    params.v = v.data();
    params.q_out = q_out.data();
    params.inverse_frequencies = inverse.data();
    params.q_norm = q_norm.data();
    params.k_norm = k_norm.data();
    params.q_scale = q_scale.data();
    params.positions = positions.data();
    params.slots = row_slots.data();
    params.q_head_stride = params.k_head_stride = params.v_head_stride = dims();
    params.q_out_head_stride = params.q_scale_head_stride = dims();
    params.q_row_stride = static_cast<long long>(heads * d + 16);
    params.k_row_stride = static_cast<long long>(kvs * d + 24);
    params.v_row_stride = static_cast<long long>(kvs * d + 8);
    params.q_out_row_stride = static_cast<long long>(heads * d + 8);
    params.rows = static_cast<int>(rows);
    params.epsilon = 1e-6F;
    params.gqa_ratio = ratio();
    params.rope_dim = rope();
    params.layout = layout();
    params.layout_length = unit();
    broach_kv_cache& cache = params.cache;
    cache.k = cache_k.data();
    cache.v = cache_v.data();
    cache.page_table = table.data();
    cache.k_head_stride = cache.v_head_stride = dims();
    cache.k_position_stride = cache.v_position_stride = static_cast<long long>(kvs * d);
    cache.k_slot_stride = cache.v_slot_stride = cells * cache.k_position_stride;
    cache.page_table_stride = layout() == 2 ? length / unit() : 0;
    cache.kv_heads = kv_heads;
    cache.slots = slots;
    cache.length = layout() == 1 ? unit() : length;
    cache.pages = pages;
  }
  QkTensors(const QkTensors&) = delete;
  QkTensors& operator=(const QkTensors&) = delete;

  std::size_t cell(std::size_t row, int kv_head) const {
    const int position = positions[row];
    int holder = row_slots[row];
    if (layout() == 2) {
      holder = table[static_cast<std::size_t>(holder * (length / unit()) + position / unit())];
    }
    const int index = layout() == 0 ? position : position % unit();
    return static_cast<std::size_t>(holder * params.cache.k_slot_stride +
                                    index * params.cache.k_position_stride + kv_head * dims());
  }
};

/// docs/families/qk_rows.md, one head at a time: no lane, no shared memory. The conversions, the
/// sine and the root are the kernel's, and have their own tests.
struct QkReference {
  const QkTensors& t;

  float rounded(float value) const {
    return widened(t.shape.dtype, narrowed(t.shape.dtype, value));
  }

  void rotate(std::vector<float>& x, int position) const {
    const auto rope = static_cast<std::size_t>(t.rope());
    for (std::size_t j = 0; j < rope / 2; ++j) {
      const bool halves = t.shape.rope_style == RopeStyle::kHalf;
      const std::size_t first = halves ? j : 2 * j;
      const std::size_t second = halves ? j + rope / 2 : 2 * j + 1;
      const float angle = static_cast<float>(position) * t.inverse[j];
      const SinCos turned = sincos32(angle);
      const float a = x[first];
      const float b = x[second];
      const float b_sine = b * turned.sin;
      const float b_cosine = b * turned.cos;
      x[first] = rounded(std::fma(a, turned.cos, -b_sine));
      x[second] = rounded(std::fma(a, turned.sin, b_cosine));
    }
  }

  float sum_of_squares(const std::vector<float>& x) const {
    std::size_t lanes = 1;
    while (lanes * 8 < x.size()) lanes *= 2;
    std::vector<float> sums(lanes, 0.0F);
    for (std::size_t i = 0; i < x.size(); ++i) sums[i / 8] = std::fma(x[i], x[i], sums[i / 8]);
    for (std::size_t mask = lanes / 2; mask > 0; mask /= 2) {
      std::vector<float> next = sums;
      for (std::size_t i = 0; i < lanes; ++i) next[i] = sums[i] + sums[i ^ mask];
      sums = next;
    }
    return sums[0];
  }

  void normalise(std::vector<float>& x, const std::vector<float>& weights) const {
    if (t.shape.norm == HeadNorm::kNone) return;
    const bool rms = t.shape.norm == HeadNorm::kRms;
    float sum = sum_of_squares(x);
    if (rms) sum = sum / static_cast<float>(x.size());
    const float factor = 1.0F / std::sqrt(sum + t.params.epsilon);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float normal = x[i] * factor;
      x[i] = rounded(rms ? normal * weights[i] : normal);
    }
  }

  std::vector<std::uint16_t> head(const std::uint16_t* from, int position,
                                  const std::vector<float>& weights, const float* scale) const {
    std::vector<float> x;
    for (int d = 0; d < t.dims(); ++d) x.push_back(widened(t.shape.dtype, from[d]));
    if (t.shape.order == QkOrder::kRopeNorm) rotate(x, position);
    normalise(x, weights);
    if (t.shape.order == QkOrder::kNormRope) rotate(x, position);
    std::vector<std::uint16_t> out;
    for (std::size_t d = 0; d < x.size(); ++d) {
      out.push_back(narrowed(t.shape.dtype, scale == nullptr ? x[d] : scale[d] * x[d]));
    }
    return out;
  }

  /// How many elements of q_out and of both caches are not what the definition says, those that a
  /// launch must leave alone included.
  std::size_t differences() const {
    std::vector<std::uint16_t> q_out(t.q_out.size(), QkTensors::kUntouched);
    std::vector<std::uint16_t> k(t.cache_k.size(), QkTensors::kUntouched);
    std::vector<std::uint16_t> v = k;
    const auto put = [](std::vector<std::uint16_t>& into, std::size_t at,
                        const std::vector<std::uint16_t>& values) {
      std::copy(values.begin(), values.end(), into.begin() + static_cast<std::ptrdiff_t>(at));
    };
    const auto d = static_cast<std::size_t>(t.dims());
    for (std::size_t row = 0; row < t.positions.size(); ++row) {
      for (std::size_t h = 0; h < static_cast<std::size_t>(t.kv_heads * t.ratio()); ++h) {
        const std::size_t from = row * static_cast<std::size_t>(t.params.q_row_stride) + h * d;
        put(q_out, row * static_cast<std::size_t>(t.params.q_out_row_stride) + h * d,
            head(&t.q[from], t.positions[row], t.q_norm,
                 t.shape.q_scale == Switch::kOn
                     ? &t.q_scale[h * static_cast<std::size_t>(t.params.q_scale_head_stride)]
                     : nullptr));
      }
      for (int h = 0; h < t.kv_heads; ++h) {
        const std::size_t k_from =
            row * static_cast<std::size_t>(t.params.k_row_stride) + static_cast<std::size_t>(h) * d;
        const std::size_t v_from =
            row * static_cast<std::size_t>(t.params.v_row_stride) + static_cast<std::size_t>(h) * d;
        put(k, t.cell(row, h), head(&t.k[k_from], t.positions[row], t.k_norm, nullptr));
        put(v, t.cell(row, h),
            {t.v.begin() + static_cast<std::ptrdiff_t>(v_from),
             t.v.begin() + static_cast<std::ptrdiff_t>(v_from + d)});
      }
    }
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < q_out.size(); ++i) wrong += q_out[i] != t.q_out[i] ? 1U : 0U;
    for (std::size_t i = 0; i < k.size(); ++i) wrong += k[i] != t.cache_k[i] ? 1U : 0U;
    for (std::size_t i = 0; i < v.size(); ++i) wrong += v[i] != t.cache_v[i] ? 1U : 0U;
    return wrong;
  }
};

}  // namespace broach::test
