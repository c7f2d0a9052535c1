#include "tools/contract/sparse_rows/range.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>

#include "tools/contract/harness/in_parallel.hpp"
#include "tools/contract/harness/number.hpp"

namespace broach::contract::sparse_rows {
namespace {

constexpr double kU = 0x1p-24;       // Half a unit of fp32, relative.
constexpr double kExp = 4 * kU;      // Two units of a portable exponential.
constexpr std::int32_t kTile = 64;   // mma: keys of a tile at an absolute position.
constexpr std::int32_t kWalk = 32;   // scalar: keys of a tile of a part.
constexpr double kLeast = 0x1p-149;  // fp32's least subnormal.

double gamma(double n) { return n * kU / (1 - n * kU); }

// An MMA step truncates each of its terms onto a grid of 2^-25 of the largest one's binade, below
// twice 2^-25 of that term itself, and its sum once more: 2 (n + 2) 2^-24 of the terms' magnitudes
// for n products that are not zero and the accumulator. Where all are zero it changes nothing.
// One product and the accumulator: a unit of 2^-24 each on the coarsest grid, and the sum's two.
double step_error(double products) {
  if (products == 0) return 0;
  return products == 1 ? 4 * kU : 2 * (products + 2) * kU;
}

struct Score {
  double exact;
  double error;
};

Score score_of(const Problem& problem, std::size_t q, std::size_t k) {
  const Recipe& recipe = problem.recipe;
  const std::size_t d = problem.head_dim();
  double dot = 0;
  double magnitude = 0;
  double key_magnitude = 0;
  for (std::size_t i = 0; i < d; ++i) {
    const double x = static_cast<double>(problem.q[q + i]);
    const double y = static_cast<double>(problem.k[k + i]);
    dot += x * y;
    magnitude += std::abs(x * y);
    key_magnitude += std::abs(y);
  }
  const double scale = std::abs(static_cast<double>(recipe.scale));
  Score score{static_cast<double>(recipe.scale) * dot, 0};
  if (recipe.shape.tile == SparseTile::kScalar) {
    // A chain of 8, a tree of at most 6 levels.
    score.error = gamma(14) * magnitude * scale;
  } else {
    const bool f32 = recipe.shape.q_dtype == QueryDtype::kF32;
    const double steps = static_cast<double>(d) / 16 * (f32 ? 3 : 1);
    score.error = steps * step_error(16) * magnitude * scale;
    // q scale rounds once, and three parts hold it to 2^-24, f16's to its least subnormal.
    if (f32) score.error += 2 * kU * magnitude * scale;
    if (f32 && recipe.shape.dtype == Dtype::kF16) score.error += 0x1p-25 * key_magnitude;
  }
  score.error += kU * std::abs(score.exact) + kLeast;
  return score;
}

// How far P's parts may be from P, relative; f16's parts are never finer than half of its least
// subnormal, which a tile's largest P, 1, is relative to.
double part_error(const SparseRowsShape& shape) {
  const double half = shape.dtype == Dtype::kBf16 ? 0x1p-8 : 0x1p-11;
  return std::max(std::pow(half, static_cast<double>(shape.p_parts)), kU / 2);
}

}  // namespace

std::vector<Bounded> bounded_outputs(const Problem& problem, std::size_t row, std::int32_t head) {
  const Recipe& recipe = problem.recipe;
  const std::size_t d = problem.head_dim();
  const std::vector<std::int32_t> keys = problem.keys(row);
  std::vector<Bounded> out(d);
  if (keys.empty()) return out;
  const std::int32_t stream = recipe.rows[row].stream;
  const std::int32_t kv_head = head / static_cast<std::int32_t>(recipe.shape.gqa_ratio);
  std::vector<Score> scores;
  double most = -std::numeric_limits<double>::infinity();
  for (const std::int32_t key : keys) {
    scores.push_back(
        score_of(problem, problem.q_at(row, head), problem.kv_at(stream, key, kv_head)));
    if (scores.back().exact > most) most = scores.back().exact;
  }
  const bool mma = recipe.shape.tile == SparseTile::kMma;
  const double parts = mma ? static_cast<double>(recipe.shape.p_parts) : 1;
  // Joins of tiles or parts after the first, which is exact: each multiplies what came before by an
  // exponential of two units, whose argument, a difference of maxima, was rounded.
  double joins = 0;
  for (std::size_t i = 1; i < keys.size(); ++i) {
    joins += keys[i] / kTile != keys[i - 1] / kTile ? 1 : 0;
  }
  if (!mma) {
    joins = static_cast<double>(recipe.shape.part_count) - 1 +
            std::floor(static_cast<double>(keys.size() - 1) / kWalk);
  }
  std::vector<double> weights(keys.size());
  std::vector<double> errors(keys.size());
  double l = 0;
  double l_error = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const double below = most - scores[i].exact;
    weights[i] = std::exp(-below);
    l += weights[i];
    const double relative = scores[i].error + 2 * kU * std::abs(below) + kExp +
                            joins * (kExp + 3 * kU) + 2 * kU * std::abs(below);
    // A weight that fp32 holds as a subnormal or as nothing.
    errors[i] = weights[i] * std::expm1(relative) + 0x1p-125;
    l_error += errors[i];
  }
  // Additions that a weight goes through: a pair, a chain of 8 pairs and two levels; or a chain.
  const double chain = (mma ? 10 : static_cast<double>(keys.size())) + 2 * joins;
  l_error += gamma(chain) * l;

  std::vector<double> sum(d, 0.0);
  std::vector<double> error(d, 0.0);
  std::vector<double> in_tile(d, 0.0);  // Magnitudes that a tile's accumulator may hold.
  std::size_t step = 0;
  while (step < keys.size()) {
    // The keys of a k16 step: the same sixteen positions.
    std::size_t end = step;
    while (end < keys.size() && (!mma || keys[end] / 16 == keys[step] / 16)) ++end;
    if (step == 0 || keys[step] / kTile != keys[step - 1] / kTile) {
      std::fill(in_tile.begin(), in_tile.end(), 0.0);
    }
    for (std::size_t i = 0; i < d; ++i) {
      double magnitude = 0;
      double products = 0;
      for (std::size_t j = step; j < end; ++j) {
        const double v =
            static_cast<double>(problem.v[problem.kv_at(stream, keys[j], kv_head) + i]);
        if (v == 0) continue;
        products += 1;
        sum[i] += weights[j] * v;
        magnitude += weights[j] * std::abs(v);
        error[i] += errors[j] * std::abs(v);
        if (mma) error[i] += weights[j] * part_error(recipe.shape) * std::abs(v);
        if (mma && recipe.shape.dtype == Dtype::kF16) error[i] += 0x1p-25 * std::abs(v);
      }
      in_tile[i] += magnitude;
      error[i] += mma ? parts * step_error(products) * in_tile[i]
                      : gamma(static_cast<double>(keys.size())) * magnitude;
      error[i] += gamma(2 * joins) * magnitude;
    }
    step = end;
  }
  for (std::size_t i = 0; i < d; ++i) {
    out[i].exact = sum[i] / l;
    out[i].most = (error[i] + std::abs(out[i].exact) * l_error) / l * 1.01 +
                  2 * kU * std::abs(out[i].exact) + kLeast;
  }
  return out;
}

double output_at(const Problem& problem, std::span<const std::byte> outputs, std::size_t i) {
  if (problem.recipe.shape.q_dtype == QueryDtype::kF32) {
    float value = 0;
    std::memcpy(&value, outputs.data() + i * sizeof value, sizeof value);
    return static_cast<double>(value);
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, outputs.data() + i * sizeof bits, sizeof bits);
  return value_of(bits, problem.recipe.shape.dtype);
}

namespace {

// RangeReport::judge for fp32 outputs, which no range is so narrow as to pin.
void judge_f32(RangeReport& report, double value, Offender where) {
  ++report.checked;
  where.value = value;
  const auto blame = [&] {
    RangeReport one;
    one.first = one.worst = where;
    report.add(one);
  };
  if (!std::isfinite(where.exact) || !std::isfinite(value)) {
    const bool same = std::isnan(where.exact) ? std::isnan(value) : value == where.exact;
    ++(same ? report.nonfinite_matched : report.nonfinite_mismatch);
    where.steps_outside = std::int64_t{1} << 32;
    if (!same) blame();
    return;
  }
  if (value >= where.lowest && value <= where.highest) {
    ++report.in_range;
    return;
  }
  ++report.out_of_range;
  const double outside = value < where.lowest ? where.lowest - value : value - where.highest;
  where.steps_outside = 1 + static_cast<std::int64_t>(std::min(
                                1e9, outside / std::max(std::abs(where.exact) * kU, kLeast)));
  blame();
}

}  // namespace

RangeReport judge(const Problem& problem, std::span<const std::byte> outputs,
                  std::uint32_t threads) {
  const std::size_t d = problem.head_dim();
  const auto heads = static_cast<std::size_t>(problem.heads());
  const bool f32 = problem.recipe.shape.q_dtype == QueryDtype::kF32;
  RangeReport report;
  std::mutex adding;
  in_parallel(problem.recipe.rows.size() * heads, threads, [&](std::size_t pair) {
    const auto head = static_cast<std::int32_t>(pair % heads);
    const std::vector<Bounded> bounded = bounded_outputs(problem, pair / heads, head);
    RangeReport one;
    for (std::size_t i = 0; i < d; ++i) {
      const Bounded& b = bounded[i];
      Offender where{static_cast<std::int32_t>(pair / heads), head, static_cast<std::int32_t>(i)};
      where.exact = b.exact;
      // A bound that is not a number bounds nothing: the class alone is judged.
      const double most = std::isnan(b.most) ? std::numeric_limits<double>::infinity() : b.most;
      where.lowest = std::isfinite(b.exact) ? b.exact - most : b.exact;
      where.highest = std::isfinite(b.exact) ? b.exact + most : b.exact;
      const std::size_t at = pair * d + i;
      if (f32) {
        judge_f32(one, output_at(problem, outputs, at), where);
      } else {
        std::uint16_t bits = 0;
        std::memcpy(&bits, outputs.data() + at * sizeof bits, sizeof bits);
        one.judge(bits, problem.recipe.shape.dtype, where);
      }
    }
    const std::scoped_lock lock(adding);
    report.add(one);
  });
  return report;
}

}  // namespace broach::contract::sparse_rows
