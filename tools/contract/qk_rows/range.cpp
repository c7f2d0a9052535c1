#include "tools/contract/qk_rows/range.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>

#include "tools/contract/harness/in_parallel.hpp"
#include "tools/contract/harness/number.hpp"

namespace broach::contract::qk_rows {
namespace {

constexpr double kU = 0x1p-24;       // A rounding to fp32, relative.
constexpr double kTurn = 4 * kU;     // Two units of a sine or cosine.
constexpr double kLeast = 0x1p-149;  // fp32's least subnormal.
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// A number in float64, and what the kernel's fp32 may make of it. Infinite ends stay.
struct Range {
  double exact;
  double low;
  double high;
};

Range point(double value) { return {value, value, value}; }

/// What a rounding to fp32 of a relative error leaves; one past fp32's largest may be infinite.
Range rounded32(Range r, double relative) {
  constexpr double kLargest = 0x1.fffffep127;
  r.low -= std::abs(r.low) * relative + kLeast;
  r.high += std::abs(r.high) * relative + kLeast;
  if (r.low < -kLargest) r.low = -kInfinity;
  if (r.high > kLargest) r.high = kInfinity;
  return r;
}

Range product(const Range& a, const Range& b) {
  double low = kInfinity;
  double high = -kInfinity;
  for (const double x : {a.low, a.high}) {
    for (const double y : {b.low, b.high}) {
      const double xy = x * y;
      // Zero times an end at infinity: anything that the factors hold between.
      low = std::isnan(xy) ? -kInfinity : std::min(low, xy);
      high = std::isnan(xy) ? kInfinity : std::max(high, xy);
    }
  }
  return {a.exact * b.exact, low, high};
}

Range sum(const Range& a, const Range& b) {
  Range r{a.exact + b.exact, a.low + b.low, a.high + b.high};
  if (std::isnan(r.low)) r.low = -kInfinity;
  if (std::isnan(r.high)) r.high = kInfinity;
  return r;
}

/// The rounding to 16 bits that ends a step.
Range rounded16(const Range& r, Dtype dtype) {
  const auto round = [&](double value) { return value_of(round_to(value, dtype), dtype); };
  return {round(r.exact), round(r.low), round(r.high)};
}

class HeadRange {
 public:
  HeadRange(const Problem& problem, std::size_t row, std::size_t index)
      : problem_(problem), dtype_(problem.recipe.shape.dtype), row_(row), index_(index) {
    const std::uint16_t* const from = problem.head(row, index);
    for (std::size_t i = 0; i < problem.head_dim(); ++i) {
      values_.push_back(point(value_of(from[i], dtype_)));
    }
  }

  /// The outputs before their rounding.
  std::vector<Range> outputs() {
    const QkRowsShape& shape = problem_.recipe.shape;
    const bool is_query = index_ < problem_.q_heads();
    if (index_ >= problem_.q_heads() + problem_.kv_heads()) return values_;
    const bool norms = shape.norm != HeadNorm::kNone;
    const bool scales = is_query && shape.q_scale == Switch::kOn;
    if (shape.order == QkOrder::kRopeNorm) {
      turn();
      if (norms || scales) settle();
    }
    if (norms) {
      normalise(is_query ? problem_.q_norm : problem_.k_norm);
      if (shape.order == QkOrder::kNormRope || scales) settle();
    }
    if (shape.order == QkOrder::kNormRope) {
      turn();
      if (scales) settle();
    }
    if (scales) {
      for (std::size_t i = 0; i < values_.size(); ++i) {
        const auto factor = static_cast<double>(problem_.scale[index_ * problem_.head_dim() + i]);
        values_[i] = rounded32(product(values_[i], point(factor)), kU);
      }
    }
    return values_;
  }

 private:
  void settle() {
    for (Range& value : values_) value = rounded16(value, dtype_);
  }

  void turn() {
    const QkRowsShape& shape = problem_.recipe.shape;
    const std::size_t pairs = shape.rope_dim / 2;
    for (std::size_t j = 0; j < pairs; ++j) {
      const bool halves = shape.rope_style == RopeStyle::kHalf;
      const std::size_t first = halves ? j : 2 * j;
      const std::size_t second = halves ? j + pairs : 2 * j + 1;
      // The angle is one fp32 product, which float64 rounds as the kernel does.
      const float position = static_cast<float>(problem_.recipe.rows[row_].position);
      const auto angle = static_cast<double>(position * problem_.inverse[j]);
      const Range c = rounded32(point(std::cos(angle)), kTurn);
      const Range s = rounded32(point(std::sin(angle)), kTurn);
      const Range x = values_[first];
      const Range y = values_[second];
      const Range minus_s{-s.exact, -s.high, -s.low};
      values_[first] = rounded32(sum(product(x, c), rounded32(product(y, minus_s), kU)), kU);
      values_[second] = rounded32(sum(product(x, s), rounded32(product(y, c), kU)), kU);
    }
  }

  void normalise(const std::vector<float>& weights) {
    const bool rms = problem_.recipe.shape.norm == HeadNorm::kRms;
    Range squares = point(0);
    for (const Range& x : values_) {
      const double low = std::min(std::abs(x.low), std::abs(x.high));
      const double high = std::max(std::abs(x.low), std::abs(x.high));
      squares.exact += x.exact * x.exact;
      squares.low += x.low <= 0 && x.high >= 0 ? 0 : low * low;
      squares.high += high * high;
    }
    // Chains of 8 products and a tree of at most 6 levels; every term is above zero.
    squares = rounded32(squares, 15 * kU);
    squares.low = std::max(squares.low, 0.0);
    const double count = rms ? static_cast<double>(values_.size()) : 1;
    const double epsilon = static_cast<double>(problem_.recipe.epsilon);
    // Mean, epsilon, root and quotient round once each; the roots of sums halve their errors.
    Range factor{1 / std::sqrt(squares.exact / count + epsilon),
                 1 / std::sqrt(squares.high / count + epsilon),
                 1 / std::sqrt(squares.low / count + epsilon)};
    factor = rounded32(factor, 4 * kU);
    for (std::size_t i = 0; i < values_.size(); ++i) {
      values_[i] = rounded32(product(values_[i], factor), kU);
      if (rms) {
        values_[i] = rounded32(product(values_[i], point(static_cast<double>(weights[i]))), kU);
      }
    }
  }

  const Problem& problem_;
  Dtype dtype_;
  std::size_t row_;
  std::size_t index_;
  std::vector<Range> values_;
};

}  // namespace

RangeReport judge(const Problem& problem, const std::vector<std::uint16_t>& outputs,
                  std::uint32_t threads) {
  RangeReport report;
  std::mutex adding;
  const std::size_t heads = problem.heads();
  in_parallel(problem.recipe.rows.size() * heads, threads, [&](std::size_t pair) {
    const std::vector<Range> ranges = HeadRange(problem, pair / heads, pair % heads).outputs();
    RangeReport one;
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      Offender where{static_cast<std::int32_t>(pair / heads),
                     static_cast<std::int32_t>(pair % heads), static_cast<std::int32_t>(i)};
      where.exact = ranges[i].exact;
      const bool finite = std::isfinite(where.exact);
      where.lowest = finite ? ranges[i].low : where.exact;
      where.highest = finite ? ranges[i].high : where.exact;
      one.judge(outputs[pair * ranges.size() + i], problem.recipe.shape.dtype, where);
    }
    const std::scoped_lock lock(adding);
    report.add(one);
  });
  return report;
}

}  // namespace broach::contract::qk_rows
