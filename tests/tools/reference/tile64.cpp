#include "tests/tools/reference/tile64.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "kernel_src/tiles/matrix_step_model.cuh"
#include "tests/tools/reference/portable_exponential.hpp"
#include "tools/contract/number.hpp"

namespace broach::test {
namespace {

using contract::DecodeProblem;
using contract::float_of;
using contract::round_to;

constexpr std::size_t kTile = 64;
constexpr std::size_t kStep = 16;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

using Bits = std::array<std::uint16_t, kStep>;

float step(Dtype dtype, const Bits& a, const Bits& b, float accumulator) {
  const auto bits = std::bit_cast<std::uint32_t>(accumulator);
  return std::bit_cast<float>(
      dtype == Dtype::kBf16
          ? tiles::matrix_step<tiles::Bf16Format, tiles::OneK16>(a.data(), 1, b.data(), 1, bits)
          : tiles::matrix_step<tiles::F16Format, tiles::OneK16>(a.data(), 1, b.data(), 1, bits));
}

class Reference {
 public:
  explicit Reference(const DecodeProblem& problem) : p_(problem) {}

  void row(std::int32_t row, std::int32_t head, std::uint16_t* out) const;

 private:
  std::int32_t kv_head_of(std::int32_t head) const {
    return head / static_cast<std::int32_t>(p_.shape.gqa_ratio);
  }
  std::uint16_t narrow(float x) const { return round_to(static_cast<double>(x), p_.shape.dtype); }
  float score(const std::uint16_t* q, const std::uint16_t* k) const;
  void fold_tile(std::int32_t row, std::int32_t head, std::int32_t tile, float& maximum, float& l,
                 std::vector<float>& o) const;

  const DecodeProblem& p_;
};

float Reference::score(const std::uint16_t* q, const std::uint16_t* k) const {
  float dot = 0;
  for (std::size_t d = 0; d < p_.shape.head_dim; d += kStep) {
    Bits a{};
    Bits b{};
    std::copy_n(q + d, kStep, a.begin());
    std::copy_n(k + d, kStep, b.begin());
    dot = step(p_.shape.dtype, a, b, dot);
  }
  const float s = dot * p_.scale;
  if (p_.shape.softcap == Switch::kOff) return s;
  return p_.softcap * portable_tanh(s / p_.softcap);
}

// A class of keys 8n + 2c + {0, 1} adds its pairs in a chain over n; classes join in pairs.
float sum_of(const std::array<float, kTile>& weights) {
  std::array<float, 4> classes{};
  for (std::size_t c = 0; c < 4; ++c) {
    classes[c] = weights[2 * c] + weights[2 * c + 1];
    for (std::size_t n = 1; n < kTile / 8; ++n) {
      classes[c] = classes[c] + (weights[8 * n + 2 * c] + weights[8 * n + 2 * c + 1]);
    }
  }
  return (classes[0] + classes[1]) + (classes[2] + classes[3]);
}

void Reference::fold_tile(std::int32_t row, std::int32_t head, std::int32_t tile, float& maximum,
                          float& l, std::vector<float>& o) const {
  const std::int32_t kv_head = kv_head_of(head);
  const auto first = tile * static_cast<std::int32_t>(kTile);
  std::array<float, kTile> scores{};
  scores.fill(-kInfinity);
  std::array<const std::uint16_t*, kTile> values{};  // Null where the row does not see the key.
  float tile_maximum = -kInfinity;
  for (std::size_t i = 0; i < kTile; ++i) {
    const std::int32_t key = first + static_cast<std::int32_t>(i);
    if (key < p_.first_key(row) || key > p_.last_key(row)) continue;
    scores[i] = score(p_.q.data() + p_.q_at(row, head), p_.k.data() + p_.k_at(row, key, kv_head));
    values[i] = p_.v.data() + p_.v_at(row, key, kv_head);
    tile_maximum = std::max(tile_maximum, scores[i]);
  }
  std::array<float, kTile> weights{};
  std::array<std::uint16_t, kTile> high{};
  std::array<std::uint16_t, kTile> low{};
  for (std::size_t i = 0; i < kTile; ++i) {
    if (values[i] == nullptr) continue;
    weights[i] = portable_exponential(scores[i] - tile_maximum);
    high[i] = narrow(weights[i]);
    low[i] = narrow(weights[i] - float_of(high[i], p_.shape.dtype));
  }
  const float next = std::max(maximum, tile_maximum);
  const float keep = portable_exponential(maximum - next);
  const float take = portable_exponential(tile_maximum - next);
  maximum = next;
  l = std::fma(l, keep, sum_of(weights) * take);
  for (std::size_t d = 0; d < o.size(); ++d) {
    float pv = 0;
    for (std::size_t from = 0; from < kTile; from += kStep) {
      Bits a{};
      Bits b{};
      for (std::size_t i = 0; i < kStep; ++i) {
        a[i] = high[from + i];
        b[i] = values[from + i] == nullptr ? std::uint16_t{0} : values[from + i][d];
      }
      pv = step(p_.shape.dtype, a, b, pv);
      if (p_.shape.p32 == Switch::kOff) continue;
      std::copy_n(low.begin() + static_cast<std::ptrdiff_t>(from), kStep, a.begin());
      pv = step(p_.shape.dtype, a, b, pv);
    }
    o[d] = std::fma(o[d], keep, pv * take);
  }
}

void Reference::row(std::int32_t row, std::int32_t head, std::uint16_t* out) const {
  float maximum = -kInfinity;
  float l = 0;
  std::vector<float> o(p_.shape.head_dim);
  constexpr auto kTileKeys = static_cast<std::int32_t>(kTile);
  for (std::int32_t tile = p_.first_key(row) / kTileKeys; tile <= p_.last_key(row) / kTileKeys;
       ++tile) {
    fold_tile(row, head, tile, maximum, l, o);
  }
  float keep = 1;
  if (p_.shape.sinks == Switch::kOn) {
    const float sink = p_.sinks[static_cast<std::size_t>(head)];
    const float next = std::max(maximum, sink);
    keep = portable_exponential(maximum - next);
    l = std::fma(l, keep, portable_exponential(sink - next));
  }
  for (std::size_t d = 0; d < o.size(); ++d) out[d] = narrow(o[d] * keep / l);
}

}  // namespace

std::vector<std::uint16_t> tile64_reference(const DecodeProblem& problem) {
  std::vector<std::uint16_t> out(problem.out_elems());
  const Reference reference(problem);
  for (std::int32_t row = 0; row < problem.rows; ++row) {
    for (std::int32_t head = 0; head < problem.heads(); ++head) {
      reference.row(row, head, out.data() + problem.out_at(row, head));
    }
  }
  return out;
}

}  // namespace broach::test
