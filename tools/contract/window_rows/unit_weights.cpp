#include "tools/contract/window_rows/unit_weights.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <set>
#include <span>

#include "kernel_src/tiles/mma_step_model.cuh"
#include "tools/contract/harness/number.hpp"

namespace broach::contract::window_rows {
namespace {

constexpr std::int32_t kChunkKeys = 256;
constexpr std::int32_t kRun = 32;
constexpr std::int32_t kStepKeys = 16;

constexpr std::int32_t kHigh = 2944;
constexpr std::int32_t kSmall = 16;

std::int32_t mirrored_value(std::int32_t position, std::int32_t dim) {
  const std::int32_t sign = (position / kRun) % 2 == 0 ? 1 : -1;
  return sign * kHigh + kSmall * (dim % kMirroredDims - kMirroredDims / 2);
}

constexpr double kHuge = 57'344;  // 1.75 * 2^15, exact in bf16 and f16.

// chunk256's sums in its order when every weight is 1: a run's chain, runs in order, chunks in
// order. `term` gives the value at a position; weights themselves are a term of 1.
template <class Term>
float chunk256_sum(std::int32_t first, std::int32_t last, Narrow narrow, Term term) {
  float total = 0;
  for (std::int32_t chunk = first / kChunkKeys; chunk <= last / kChunkKeys; ++chunk) {
    float chunk_sum = 0;
    for (std::int32_t run = 0; run < kChunkKeys / kRun; ++run) {
      const std::int32_t from = std::max(first, chunk * kChunkKeys + run * kRun);
      const std::int32_t to = std::min(last, chunk * kChunkKeys + run * kRun + kRun - 1);
      float run_sum = 0;
      for (std::int32_t j = from; j <= to; ++j) run_sum = narrow(run_sum + term(j));
      chunk_sum = narrow(chunk_sum + run_sum);
    }
    total = narrow(total + chunk_sum);
  }
  return total;
}

// One k16 step of a chip's matrix unit: weights of 1 (0 where a key is not seen) times values.
float value_step(specializer::MmaStep step, Dtype dtype,
                 const std::array<std::uint16_t, kStepKeys>& weights,
                 const std::array<std::uint16_t, kStepKeys>& values, float accumulator) {
  const auto run = [&]<class In>(In) {
    const auto bits = std::bit_cast<std::uint32_t>(accumulator);
    return step == specializer::MmaStep::kTwoK8
               ? tiles::mma_step<In, tiles::TwoK8>(weights.data(), 1, values.data(), 1, bits)
               : tiles::mma_step<In, tiles::OneK16>(weights.data(), 1, values.data(), 1, bits);
  };
  return std::bit_cast<float>(dtype == Dtype::kBf16 ? run(tiles::Bf16Format{})
                                                    : run(tiles::F16Format{}));
}

// tile64's and mma32's sums in their order when every weight is 1: a chain of MMA steps from 0 a
// tile, tiles folded in order. `value` gives the bits at a position. A narrower accumulator is
// taken to round once a step. A weight's second half is +0 and its step adds nothing.
template <class Value>
float tiles_sum(std::int32_t tile_keys, specializer::MmaStep step, Dtype dtype, std::int32_t first,
                std::int32_t last, Narrow narrow, Value value) {
  const std::uint16_t one = round_to(1, dtype);
  float total = 0;
  for (std::int32_t tile = first / tile_keys; tile <= last / tile_keys; ++tile) {
    float tile_sum = 0;
    for (std::int32_t from = tile * tile_keys; from < (tile + 1) * tile_keys; from += kStepKeys) {
      std::array<std::uint16_t, kStepKeys> weights{};
      std::array<std::uint16_t, kStepKeys> values{};
      for (std::int32_t j = std::max(from, first); j < from + kStepKeys && j <= last; ++j) {
        weights[static_cast<std::size_t>(j - from)] = one;
        values[static_cast<std::size_t>(j - from)] = value(j);
      }
      tile_sum = narrow(value_step(step, dtype, weights, values, tile_sum));
    }
    total = narrow(total + tile_sum);
  }
  return total;
}

// The bits of the values that a row sees through a query head, by position.
auto values_of(const Problem& p, std::int32_t row, std::int32_t head, std::int32_t dim) {
  const std::int32_t kv_head = head / static_cast<std::int32_t>(p.shape.gqa_ratio);
  return [&p, row, kv_head, dim](std::int32_t position) {
    return p.v[static_cast<std::size_t>(p.v_at(row, position, kv_head) + dim)];
  };
}

std::int64_t weights_of(const Problem& p, std::int32_t row) {
  return p.last_key(row) - p.first_key(row) + 1 + (p.shape.sinks == Switch::kOn ? 1 : 0);
}

}  // namespace

std::int32_t piece_keys(Arith arith) noexcept {
  switch (arith) {
    case Arith::kTile64:
    case Arith::kTile64Ex2:
      return 64;
    case Arith::kMma32:
      return 32;
    case Arith::kChunk256:
    case Arith::kDefault:
      break;
  }
  return kChunkKeys;
}

float as_fp32(float x) { return x; }

float as_f16(float x) {
  return float_of(round_to(static_cast<double>(x), Dtype::kF16), Dtype::kF16);
}

float as_bf16(float x) {
  return float_of(round_to(static_cast<double>(x), Dtype::kBf16), Dtype::kBf16);
}

void set_keys_to_zero(Problem& p) {
  for (std::uint16_t& k : p.k) k = is_nan(k, p.shape.dtype) ? k : std::uint16_t{0};
  for (float& sink : p.sinks) sink = 0;
}

void set_values_mirrored(Problem& p) {
  std::set<std::int64_t> done;  // Cells that an earlier row sees too.
  for (std::int32_t row = 0; row < p.rows; ++row) {
    for (std::int32_t j = p.first_key(row); j <= p.last_key(row); ++j) {
      if (!done.insert(p.v_at(row, j, 0)).second) continue;
      for (std::int32_t head = 0; head < p.kv_heads; ++head) {
        const auto at = static_cast<std::size_t>(p.v_at(row, j, head));
        for (std::int32_t d = 0; d < p.head_dim(); ++d) {
          p.v[at + static_cast<std::size_t>(d)] = round_to(mirrored_value(j, d), p.shape.dtype);
        }
      }
    }
  }
}

void set_values_cancelling(Problem& p) {
  std::map<std::int32_t, std::int32_t> row_of_slot;  // The one that sees most.
  const auto keys = [&](std::int32_t row) { return p.last_key(row) - p.first_key(row) + 1; };
  for (std::int32_t row = 0; row < p.rows; ++row) {
    const auto [at, first] = row_of_slot.try_emplace(p.slots[static_cast<std::size_t>(row)], row);
    if (!first && keys(row) > keys(at->second)) at->second = row;
  }
  for (const auto& [slot, row] : row_of_slot) {
    const std::int32_t fifth = keys(row) / 5;
    const auto fill = [&, row = row](std::int32_t from, double value) {
      for (std::int32_t j = from; j < from + fifth; ++j) {
        for (std::int32_t head = 0; head < p.kv_heads; ++head) {
          const auto at = p.v.begin() + p.v_at(row, j, head);
          std::fill(at, at + p.head_dim(), round_to(value, p.shape.dtype));
        }
      }
    };
    fill(p.first_key(row) + fifth, kHuge);
    fill(p.first_key(row) + 3 * fifth, -kHuge);
  }
}

std::uint16_t unit_weight_output(const Problem& p, specializer::MmaStep step, std::int32_t row,
                                 std::int32_t head, std::int32_t dim, Narrow narrow) {
  const std::int32_t first = p.first_key(row);
  const std::int32_t last = p.last_key(row);
  const auto value = values_of(p, row, head, dim);
  const auto widened = [&](std::int32_t position) {
    return float_of(value(position), p.shape.dtype);
  };
  const float numerator =
      p.shape.arith == Arith::kChunk256
          ? chunk256_sum(first, last, narrow, widened)
          : tiles_sum(piece_keys(p.shape.arith), step, p.shape.dtype, first, last, narrow, value);
  // Weights are summed in fp32 in both: whole numbers below 2^24, exact in any order.
  float denominator = chunk256_sum(first, last, narrow, [](std::int32_t) { return 1.0F; });
  if (p.shape.sinks == Switch::kOn) denominator = narrow(denominator + 1.0F);
  return round_to(static_cast<double>(numerator / denominator), p.shape.dtype);
}

std::uint16_t unit_weight_float64(const Problem& p, std::int32_t row, std::int32_t head,
                                  std::int32_t dim) {
  const auto value = values_of(p, row, head, dim);
  double sum = 0;
  for (std::int32_t j = p.first_key(row); j <= p.last_key(row); ++j) {
    sum += value_of(value(j), p.shape.dtype);
  }
  return round_to(sum / static_cast<double>(weights_of(p, row)), p.shape.dtype);
}

Apart apart_from_float64(const Problem& p, std::span<const std::uint16_t> out) {
  const auto ratio = static_cast<std::int32_t>(p.shape.gqa_ratio);
  Apart counted;
  for (std::int32_t row = 0; row < p.rows; ++row) {
    for (std::int32_t kv_head = 0; kv_head < p.kv_heads; ++kv_head) {
      for (std::int32_t d = 0; d < p.head_dim(); ++d) {
        // The queries do not matter: every query head of a KV head has the same exact output.
        const std::uint16_t exact = unit_weight_float64(p, row, kv_head * ratio, d);
        for (std::int32_t head = kv_head * ratio; head < (kv_head + 1) * ratio; ++head) {
          ++counted.outputs;
          if (out[static_cast<std::size_t>(p.out_at(row, head) + d)] != exact) ++counted.apart;
        }
      }
    }
  }
  return counted;
}

std::uint16_t mirrored_output(const Problem& p, std::int32_t row, std::int32_t dim) {
  std::int64_t sum = 0;
  for (std::int32_t j = p.first_key(row); j <= p.last_key(row); ++j) sum += mirrored_value(j, dim);
  // Both are whole numbers below 2^24: fp32 holds them, and rounds their quotient once.
  const float quotient = static_cast<float>(sum) / static_cast<float>(weights_of(p, row));
  return round_to(static_cast<double>(quotient), p.shape.dtype);
}

}  // namespace broach::contract::window_rows
