#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "common/half.cuh"
#include "tests/runtime/window_rows/host_decode.hpp"

namespace broach::test {

/// A decode whose keys, values and queries depend on what they belong to and on nothing else: not
/// on the batch, the slot, the layout or where in memory they lie.
struct DecodeCase {
  struct Row {
    int stream = 0;
    int position = 0;
  };
  /// 16 bits put in the place of an element of q (by row), k or v (by stream and position).
  struct Plant {
    char tensor = 'v';
    int row_or_stream = 0;
    int position = 0;
    int head = 0;
    int dim = 0;
    std::uint16_t bits = 0;
  };

  WindowRowsShape shape;
  int kv_heads = 2;
  std::vector<Row> rows;
  std::vector<int> slot_of_stream = {0, 1, 2};
  int slots = 3;
  int length = 0;  ///< Of linear and paged slots; a ring's is the shape's.
  float scale = 1.0F;
  float softcap = 0.0F;
  std::vector<float> sinks;
  std::vector<Plant> plants;
  specializer::Variant variant;

  int heads() const { return kv_heads * static_cast<int>(shape.gqa_ratio); }
  int head_dim() const { return static_cast<int>(shape.head_dim); }
  int first_key(const Row& row) const {
    const int window = static_cast<int>(shape.window);
    return window == 0 ? 0 : std::max(0, row.position - window + 1);
  }

  std::uint16_t narrow(float value) const {
    return shape.dtype == Dtype::kBf16 ? broach::narrow<Half::kBf16>(value)
                                       : broach::narrow<Half::kF16>(value);
  }
  float widen(std::uint16_t bits) const {
    return shape.dtype == Dtype::kBf16 ? broach::widen<Half::kBf16>(bits)
                                       : broach::widen<Half::kF16>(bits);
  }

  /// An element of q (owner: the row's stream), k or v, uniform in +-1.7 (k: +-0.25).
  std::uint16_t element(char tensor, int stream, int position, int head, int dim) const {
    constexpr std::uint64_t kMix = 0x9e3779b97f4a7c15;
    std::uint64_t x = static_cast<unsigned char>(tensor);
    for (const int part : {stream, position, head, dim}) {
      x = (x ^ static_cast<std::uint64_t>(part)) * kMix;
      x ^= x >> 29;
    }
    const float unit = static_cast<float>(x >> 40) * 0x1p-23F - 1.0F;
    return narrow(unit * (tensor == 'k' ? 0.25F : 1.7F));
  }
  std::uint16_t planted(char tensor, int row_or_stream, int position, int head, int dim,
                        std::uint16_t otherwise) const {
    for (const Plant& plant : plants) {
      if (plant.tensor == tensor && plant.row_or_stream == row_or_stream &&
          (tensor == 'q' || plant.position == position) && plant.head == head && plant.dim == dim) {
        return plant.bits;
      }
    }
    return otherwise;
  }
  std::uint16_t q(int row, int head, int dim) const {
    const Row& at = rows[static_cast<std::size_t>(row)];
    return planted('q', row, 0, head, dim, element('q', at.stream, at.position, head, dim));
  }
  std::uint16_t cached(char tensor, int stream, int position, int head, int dim) const {
    return planted(tensor, stream, position, head, dim,
                   element(tensor, stream, position, head, dim));
  }
};

/// The tensors of a case. Cells that hold no key that a row sees hold NaN.
struct DecodeTensors {
  std::vector<std::uint16_t> q, k, v, out;
  std::vector<int> positions, slots, page_table;
  BroachWindowRowsDecode params{};
  int max_keys = 1;
};

inline DecodeTensors lay_out(const DecodeCase& c) {
  DecodeTensors t;
  const int dims = c.head_dim();
  const KvLayout layout = c.shape.kv_layout;
  const bool paged = layout.kind == KvLayoutKind::kPaged;
  const int unit = static_cast<int>(layout.length);
  const int length = layout.kind == KvLayoutKind::kRing ? unit : c.length;
  const int pages_a_slot = paged ? length / unit : 1;
  // One page more than there are entries, which the table never names.
  const int pages = paged ? c.slots * pages_a_slot + 1 : c.slots;
  const long long position_stride = static_cast<long long>(c.kv_heads) * dims;
  const long long slot_stride = (paged ? unit : length) * position_stride;
  const auto cells = static_cast<std::size_t>(pages * slot_stride);
  t.k.assign(cells, 0x7fff);
  t.v.assign(cells, 0x7fff);
  for (int i = 0; paged && i < c.slots * pages_a_slot; ++i) {
    t.page_table.push_back((i * 5 + 3) % (c.slots * pages_a_slot));
  }
  if (paged) t.page_table.push_back(pages - 1);  // What reading past a slot's pages finds.

  for (std::size_t i = 0; i < c.rows.size(); ++i) {
    const DecodeCase::Row& row = c.rows[i];
    const int slot = c.slot_of_stream[static_cast<std::size_t>(row.stream)];
    t.positions.push_back(row.position);
    t.slots.push_back(slot);
    t.max_keys = std::max(t.max_keys, row.position + 1);
    for (int h = 0; h < c.heads(); ++h) {
      for (int d = 0; d < dims; ++d) t.q.push_back(c.q(static_cast<int>(i), h, d));
    }
    for (int key = c.first_key(row); key <= row.position; ++key) {
      long long base = slot * slot_stride + key * position_stride;
      if (layout.kind == KvLayoutKind::kRing) {
        base = slot * slot_stride + key % unit * position_stride;
      } else if (paged) {
        const auto entry = static_cast<std::size_t>(slot * pages_a_slot + key / unit);
        base = t.page_table[entry] * slot_stride + key % unit * position_stride;
      }
      for (int h = 0; h < c.kv_heads; ++h) {
        for (int d = 0; d < dims; ++d) {
          const auto at = static_cast<std::size_t>(base + h * dims + d);
          t.k[at] = c.cached('k', row.stream, key, h, d);
          t.v[at] = c.cached('v', row.stream, key, h, d);
        }
      }
    }
  }
  t.out.assign(t.q.size(), 0x7fff);

  BroachWindowRowsDecode& p = t.params;
  p.attention.q = t.q.data();
  p.cache.k = t.k.data();
  p.cache.v = t.v.data();
  p.attention.out = t.out.data();
  p.positions = t.positions.data();
  p.slots = t.slots.data();
  p.cache.page_table = paged ? t.page_table.data() : nullptr;
  p.attention.sinks = c.sinks.empty() ? nullptr : c.sinks.data();
  p.attention.q_head_stride = p.attention.out_head_stride = dims;
  p.attention.q_row_stride = p.attention.out_row_stride = static_cast<long long>(c.heads()) * dims;
  p.cache.k_slot_stride = p.cache.v_slot_stride = slot_stride;
  p.cache.k_position_stride = p.cache.v_position_stride = position_stride;
  p.cache.k_head_stride = p.cache.v_head_stride = dims;
  p.cache.page_table_stride = pages_a_slot;
  p.attention.rows = static_cast<int>(c.rows.size());
  p.cache.kv_heads = c.kv_heads;
  p.cache.slots = c.slots;
  p.cache.length = length;
  p.attention.scale = c.scale;
  p.attention.softcap = c.softcap;
  return t;
}

inline std::vector<std::uint16_t> decode(const DecodeCase& c) {
  DecodeTensors t = lay_out(c);
  const auto ran = try_decode(c.shape, t.params, t.max_keys, c.variant);
  if (!ran) FAIL(ran.error().message);
  return t.out;
}

/// The outputs of one row of a batch.
inline std::vector<std::uint16_t> row_of(const DecodeCase& c, const std::vector<std::uint16_t>& out,
                                         std::size_t row) {
  const auto values = static_cast<std::ptrdiff_t>(c.heads() * c.head_dim());
  const auto first = out.begin() + static_cast<std::ptrdiff_t>(row) * values;
  return {first, first + values};
}

/// One output row in float64, straight from the definition.
inline std::vector<double> reference(const DecodeCase& c, int row) {
  const DecodeCase::Row& at = c.rows[static_cast<std::size_t>(row)];
  const int ratio = static_cast<int>(c.shape.gqa_ratio);
  std::vector<double> out;
  for (int h = 0; h < c.heads(); ++h) {
    std::vector<double> scores;
    double most = -std::numeric_limits<double>::infinity();
    for (int key = c.first_key(at); key <= at.position; ++key) {
      double dot = 0;
      for (int d = 0; d < c.head_dim(); ++d) {
        dot += double{c.widen(c.q(row, h, d))} *
               double{c.widen(c.cached('k', at.stream, key, h / ratio, d))};
      }
      double s = double{c.scale} * dot;
      if (c.shape.softcap == Switch::kOn) s = double{c.softcap} * std::tanh(s / double{c.softcap});
      scores.push_back(s);
      if (s > most) most = s;
    }
    const bool sink = c.shape.sinks == Switch::kOn;
    const double logit = sink ? double{c.sinks[static_cast<std::size_t>(h)]} : 0.0;
    if (sink) most = std::max(most, logit);
    double l = sink ? std::exp(logit - most) : 0.0;
    std::vector<double> o(static_cast<std::size_t>(c.head_dim()), 0.0);
    for (std::size_t i = 0; i < scores.size(); ++i) {
      const double p = std::exp(scores[i] - most);
      l += p;
      for (int d = 0; d < c.head_dim(); ++d) {
        const int key = c.first_key(at) + static_cast<int>(i);
        o[static_cast<std::size_t>(d)] +=
            p * double{c.widen(c.cached('v', at.stream, key, h / ratio, d))};
      }
    }
    for (const double value : o) out.push_back(value / l);
  }
  return out;
}

/// How many outputs are further from float64 than half a unit of the 16-bit type and fp32's noise,
/// or of another class (NaN, either infinity, finite).
inline std::size_t wrong_outputs(const DecodeCase& c, const std::vector<std::uint16_t>& out) {
  const double half_unit = c.shape.dtype == Dtype::kBf16 ? 0x1p-8 : 0x1p-11;
  std::size_t wrong = 0;
  for (std::size_t row = 0; row < c.rows.size(); ++row) {
    const std::vector<double> want = reference(c, static_cast<int>(row));
    const std::vector<std::uint16_t> got = row_of(c, out, row);
    for (std::size_t i = 0; i < want.size(); ++i) {
      const double value = double{c.widen(got[i])};
      bool right = false;
      if (std::isfinite(want[i])) {
        right = std::abs(value - want[i]) <= half_unit * std::abs(want[i]) + 1e-5;
      } else {
        right = std::isnan(want[i]) ? std::isnan(value) : value == want[i];
      }
      if (!right) ++wrong;
    }
  }
  return wrong;
}

}  // namespace broach::test
