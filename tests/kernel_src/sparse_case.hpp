#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "broach/sparse_rows.hpp"
#include "common/exp.cuh"
#include "common/half.cuh"
#include "sparse_rows/params.h"

namespace broach::test {

/// A row: whose stream, where in it, and the blocks it selected.
struct SparseRow {
  int stream = 0;
  int position = 0;
  std::vector<int> blocks;
};

/// Every block that ends at or before a position: what a dense row selects.
inline std::vector<int> every_block(int position, int compress_ratio) {
  std::vector<int> blocks(static_cast<std::size_t>((position + 1) / compress_ratio));
  std::iota(blocks.begin(), blocks.end(), 0);
  return blocks;
}

/// `count` blocks at random of those a row may select.
inline std::vector<int> random_blocks(int position, int compress_ratio, int count,
                                      std::uint32_t seed) {
  std::vector<int> blocks = every_block(position, compress_ratio);
  std::mt19937 random(seed);
  std::shuffle(blocks.begin(), blocks.end(), random);
  blocks.resize(std::min(blocks.size(), static_cast<std::size_t>(count)));
  std::sort(blocks.begin(), blocks.end());
  return blocks;
}

/// Rows over streams whose keys depend on stream, position and head alone: not on the batch, the
/// slot or the layout. Cells that no row selected hold `unselected`.
class SparseProblem {
 public:
  /// 16 bits in the place of an element of a stream's k or v.
  struct Plant {
    char tensor = 'v';
    int stream = 0, position = 0, kv_head = 0, dim = 0;
    std::uint16_t bits = 0;
  };

  SparseRowsShape shape;
  int kv_heads = 2;
  std::vector<SparseRow> rows;
  int positions = 0;  ///< Of a linear or paged slot.
  int slots = 3;
  int slot_shift = 0;  ///< Slot of stream s is s + slot_shift.
  float scale = 0.3F;
  float k_scale = 0.5F;
  std::uint16_t unselected = 0x7fff;
  std::vector<Plant> plants;

  int ratio() const { return static_cast<int>(shape.gqa_ratio); }
  int block_keys() const { return static_cast<int>(shape.compress_ratio); }
  int head_dim() const { return static_cast<int>(shape.head_dim); }
  int layout() const { return static_cast<int>(shape.kv_layout.kind); }
  int unit() const { return static_cast<int>(shape.kv_layout.length); }
  bool is_f32() const { return shape.q_dtype == QueryDtype::kF32; }
  int heads() const { return kv_heads * ratio(); }
  std::size_t dims() const { return shape.head_dim; }
  float widened(std::uint16_t bits) const {
    return shape.dtype == Dtype::kBf16 ? widen<Half::kBf16>(bits) : widen<Half::kF16>(bits);
  }
  std::uint16_t narrowed(float value) const {
    return shape.dtype == Dtype::kBf16 ? narrow<Half::kBf16>(value) : narrow<Half::kF16>(value);
  }

  /// Uniform in +-1.7, from what it belongs to alone.
  float element(char tensor, int stream, int position, int head, int dim) const {
    constexpr std::uint64_t kMix = 0x9e3779b97f4a7c15;
    std::uint64_t x = static_cast<unsigned char>(tensor);
    for (const int part : {stream, position, head, dim}) {
      x = (x ^ static_cast<std::uint64_t>(part)) * kMix;
      x ^= x >> 29;
    }
    return 1.7F * (static_cast<float>(x >> 40) * 0x1p-23F - 1.0F);
  }
  std::uint16_t cached(char tensor, int stream, int position, int kv_head, int dim) const {
    for (const Plant& plant : plants) {
      if (plant.tensor == tensor && plant.stream == stream && plant.position == position &&
          plant.kv_head == kv_head && plant.dim == dim) {
        return plant.bits;
      }
    }
    const float value = element(tensor, stream, position, kv_head, dim);
    return narrowed(tensor == 'k' ? k_scale * value : value);
  }
  float query(const SparseRow& row, int head, int dim) const {
    const float value = element('q', row.stream, row.position, head, dim);
    return is_f32() ? value : widened(narrowed(value));
  }

  /// A row's selected keys in list order.
  std::vector<int> keys(const SparseRow& row) const {
    std::vector<int> out;
    for (const int block : row.blocks) {
      for (int i = 0; i < block_keys(); ++i) out.push_back(block * block_keys() + i);
    }
    for (int key = (row.position + 1) / block_keys() * block_keys(); key <= row.position; ++key) {
      out.push_back(key);
    }
    return out;
  }

  /// One output row in float64, straight from the definition: [heads][D].
  std::vector<double> exact(const SparseRow& row) const {
    std::vector<double> out;
    const std::vector<int> list = keys(row);
    for (int head = 0; head < heads(); ++head) {
      std::vector<double> scores;
      double most = -std::numeric_limits<double>::infinity();
      for (const int key : list) {
        double dot = 0;
        for (int d = 0; d < head_dim(); ++d) {
          dot += double{query(row, head, d)} *
                 double{widened(cached('k', row.stream, key, head / ratio(), d))};
        }
        scores.push_back(double{scale} * dot);
        if (scores.back() > most) most = scores.back();
      }
      std::vector<double> o(dims(), 0.0);
      double l = 0;
      for (std::size_t i = 0; i < list.size(); ++i) {
        const double p = std::exp(scores[i] - most);
        l += p;
        for (std::size_t d = 0; d < dims(); ++d) {
          o[d] += p * double{widened(
                          cached('v', row.stream, list[i], head / ratio(), static_cast<int>(d)))};
        }
      }
      for (const double value : o) out.push_back(list.empty() ? 0.0 : value / l);
    }
    return out;
  }
};

/// The tensors of a problem, laid out.
struct SparseTensors {
  std::vector<std::uint16_t> k, v, q16, out16;
  std::vector<float> q32, out32;
  std::vector<int> positions, slots, counts, blocks, table;
  std::vector<double> workspace;
  BroachSparseRows params{};
  bool f32 = false;

  explicit SparseTensors(const SparseProblem& problem) : f32(problem.is_f32()) {
    const auto d = problem.dims();
    const auto kvs = static_cast<std::size_t>(problem.kv_heads);
    const auto heads = static_cast<std::size_t>(problem.heads());
    const int unit = problem.unit();
    const int cells = problem.layout() == 0 ? problem.positions : unit;
    const int slot_pages = problem.layout() == 2 ? (problem.positions + unit - 1) / unit : 0;
    const int pages = problem.slots * slot_pages;
    for (int i = 0; i < pages; ++i) table.push_back((i * 5 + 3) % pages);
    const auto held = static_cast<std::size_t>(problem.layout() == 2 ? pages : problem.slots);
    k.assign(held * static_cast<std::size_t>(cells) * kvs * d, problem.unselected);
    v = k;
    std::size_t most_blocks = 1;
    for (const SparseRow& row : problem.rows)
      most_blocks = std::max(most_blocks, row.blocks.size());
    for (const SparseRow& row : problem.rows) {
      positions.push_back(row.position);
      slots.push_back(row.stream + problem.slot_shift);
      counts.push_back(static_cast<int>(row.blocks.size()));
      std::vector<int> padded = row.blocks;
      padded.resize(most_blocks, -77);
      blocks.insert(blocks.end(), padded.begin(), padded.end());
      for (const int key : problem.keys(row)) {
        int holder = slots.back();
        if (problem.layout() == 2) {
          holder = table[static_cast<std::size_t>(holder * slot_pages + key / unit)];
        }
        const int index = problem.layout() == 0 ? key : key % unit;
        for (int h = 0; h < problem.kv_heads; ++h) {
          const std::size_t at = (static_cast<std::size_t>(holder * cells + index) * kvs +
                                  static_cast<std::size_t>(h)) *
                                 d;
          for (std::size_t e = 0; e < d; ++e) {
            k[at + e] = problem.cached('k', row.stream, key, h, static_cast<int>(e));
            v[at + e] = problem.cached('v', row.stream, key, h, static_cast<int>(e));
          }
        }
      }
      for (int h = 0; h < problem.heads(); ++h) {
        for (int e = 0; e < problem.head_dim(); ++e) {
          q32.push_back(problem.query(row, h, e));
          q16.push_back(problem.narrowed(q32.back()));
        }
      }
    }
    out16.assign(q16.size(), 0x7fff);
    out32.assign(q32.size(), std::numeric_limits<float>::quiet_NaN());

    broach_attention_rows& attention = params.attention;
    attention.q = f32 ? static_cast<const void*>(q32.data()) : q16.data();
    attention.out = f32 ? static_cast<void*>(out32.data()) : out16.data();
    attention.q_head_stride = attention.out_head_stride = problem.head_dim();
    attention.q_row_stride = attention.out_row_stride = static_cast<long long>(heads * d);
    attention.rows = static_cast<int>(problem.rows.size());
    attention.scale = problem.scale;
    broach_kv_cache& cache = params.cache;
    cache.k = k.data();
    cache.v = v.data();
    cache.page_table = table.empty() ? nullptr : table.data();
    cache.k_head_stride = cache.v_head_stride = problem.head_dim();
    cache.k_position_stride = cache.v_position_stride = static_cast<long long>(kvs * d);
    cache.k_slot_stride = cache.v_slot_stride = cells * cache.k_position_stride;
    cache.page_table_stride = slot_pages;
    cache.kv_heads = problem.kv_heads;
    cache.slots = problem.slots;
    cache.length = problem.layout() == 1 ? unit : problem.layout() == 2 ? slot_pages * unit : cells;
    cache.pages = pages;
    params.positions = positions.data();
    params.slots = slots.data();
    params.block_counts = counts.data();
    params.blocks = blocks.data();
    params.count_row_stride = 1;
    params.block_row_stride = static_cast<long long>(most_blocks);
    params.compress_ratio = problem.block_keys();
    params.part_count = static_cast<int>(problem.shape.part_count);
    params.gqa_ratio = problem.ratio();
    params.layout = problem.layout();
    params.layout_length = unit;
    params.splits = 1;
    workspace.assign(problem.rows.size() * heads *
                             static_cast<std::size_t>(problem.shape.part_count) * (d + 2) / 2 +
                         1,
                     std::numeric_limits<double>::quiet_NaN());
    params.workspace = workspace.data();
  }
  SparseTensors(const SparseTensors&) = delete;
  SparseTensors& operator=(const SparseTensors&) = delete;

  /// The outputs as bits, whatever their type.
  std::vector<std::uint32_t> bits() const {
    std::vector<std::uint32_t> all;
    for (std::size_t i = 0; i < out32.size(); ++i) {
      all.push_back(f32 ? bits_of(out32[i]) : out16[i]);
    }
    return all;
  }
  std::vector<float> values(const SparseProblem& problem) const {
    std::vector<float> all;
    for (std::size_t i = 0; i < out32.size(); ++i) {
      all.push_back(f32 ? out32[i] : problem.widened(out16[i]));
    }
    return all;
  }
};

/// docs/families/sparse_rows.md's `scalar`, one (row, query head) at a time: no lane, no block. The
/// exponential and the conversions are the kernel's, and have their own tests.
struct ScalarReference {
  const SparseProblem& problem;

  float score(const SparseRow& row, int head, int key) const {
    std::size_t lanes = 1;
    while (lanes * 8 < problem.dims()) lanes *= 2;
    std::vector<float> sums(lanes, 0.0F);
    for (std::size_t d = 0; d < problem.dims(); ++d) {
      const int dim = static_cast<int>(d);
      const float k =
          problem.widened(problem.cached('k', row.stream, key, head / problem.ratio(), dim));
      sums[d / 8] = std::fma(problem.query(row, head, dim), k, sums[d / 8]);
    }
    for (std::size_t mask = lanes / 2; mask > 0; mask /= 2) {
      std::vector<float> next = sums;
      for (std::size_t i = 0; i < lanes; ++i) next[i] = sums[i] + sums[i ^ mask];
      sums = next;
    }
    return problem.scale * sums[0];
  }

  std::vector<std::uint32_t> row(const SparseRow& row) const {
    std::vector<std::uint32_t> out;
    const std::vector<int> list = problem.keys(row);
    const auto parts = static_cast<std::size_t>(problem.shape.part_count);
    const std::size_t part_keys = (list.size() + parts - 1) / parts;
    constexpr float kLowest = -std::numeric_limits<float>::infinity();
    for (int head = 0; head < problem.heads(); ++head) {
      std::vector<float> o(problem.dims(), 0.0F);
      float l = 0.0F;
      float maximum = kLowest;
      for (std::size_t first = 0; first < list.size(); first += part_keys) {
        const std::size_t last = std::min(first + part_keys, list.size());
        std::vector<float> part_o(problem.dims(), 0.0F);
        float part_l = 0.0F;
        float m = kLowest;
        for (std::size_t tile = first; tile < last; tile += 32) {
          const std::size_t end = std::min(tile + 32, last);
          float scores[32];
          float next = m;
          for (std::size_t i = tile; i < end; ++i) {
            scores[i - tile] = score(row, head, list[i]);
            next = std::max(next, scores[i - tile]);
          }
          const float a = exp32(m - next);
          m = next;
          part_l = part_l * a;
          for (float& value : part_o) value = value * a;
          for (std::size_t i = tile; i < end; ++i) {
            const float p = exp32(scores[i - tile] - m);
            part_l = part_l + p;
            for (std::size_t d = 0; d < o.size(); ++d) {
              const float v = problem.widened(problem.cached(
                  'v', row.stream, list[i], head / problem.ratio(), static_cast<int>(d)));
              part_o[d] = std::fma(p, v, part_o[d]);
            }
          }
        }
        const float next = std::max(maximum, m);
        const float a = exp32(maximum - next);
        const float b = exp32(m - next);
        maximum = next;
        const float joining = part_l * b;
        l = std::fma(l, a, joining);
        for (std::size_t d = 0; d < o.size(); ++d) {
          const float value = part_o[d] * b;
          o[d] = std::fma(o[d], a, value);
        }
      }
      for (const float value : o) {
        const float result = list.empty() ? 0.0F : value / l;
        out.push_back(problem.is_f32() ? bits_of(result) : problem.narrowed(result));
      }
    }
    return out;
  }

  std::vector<std::uint32_t> all() const {
    std::vector<std::uint32_t> out;
    for (const SparseRow& at : problem.rows) {
      const auto bits = row(at);
      out.insert(out.end(), bits.begin(), bits.end());
    }
    return out;
  }
};

}  // namespace broach::test
