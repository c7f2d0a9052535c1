#include "tools/contract/window_rows/row_range.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

#include "tools/contract/harness/number.hpp"

namespace broach::contract::window_rows {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::size_t kStepDims = 16;  // Dims a k16 MMA step.
constexpr std::size_t kStepKeys = 16;  // Keys a k16 MMA step of P x V, at absolute positions.

// A score in float64 and how far the form's score may lie from it.
struct Score {
  double value;
  double spread;
};

struct Dot {
  double sum = 0;        // sum q k
  double magnitude = 0;  // sum |q k|
  double steps = 0;      // sum over the k16 steps of |accumulator before the step|
};

// D is a multiple of 8; the 8 partial sums let the compiler use vector registers.
Dot dot_of(const double* q, const double* k, std::size_t dims, std::size_t slice_dims) {
  Dot dot;
  double slice = 0;
  for (std::size_t at = 0; at < dims; at += kStepDims) {
    std::array<double, 8> sums{};
    std::array<double, 8> magnitudes{};
    const std::size_t end = std::min(dims, at + kStepDims);
    for (std::size_t d = at; d < end; d += 8) {
      for (std::size_t i = 0; i < 8; ++i) {
        const double product = q[d + i] * k[d + i];
        sums[i] += product;
        magnitudes[i] += std::fabs(product);
      }
    }
    if (slice_dims > 0 && at % slice_dims == 0) {
      dot.sum += slice;
      slice = 0;
    }
    dot.steps += std::fabs(slice);
    for (std::size_t i = 0; i < 8; ++i) {
      slice += sums[i];
      dot.magnitude += magnitudes[i];
    }
  }
  dot.sum += slice;
  return dot;
}

Score score_of(const Dot& dot, const RowView& view, const FormBounds& bounds) {
  const double scale = std::fabs(view.scale);
  const auto dims = static_cast<double>(view.head_dim);
  Score score{view.scale * dot.sum, 0};
  // A step's own error enters the next steps' accumulators: the last factor covers those terms.
  score.spread = bounds.score_chain * scale * dot.magnitude +
                 bounds.score_step * scale * (dot.magnitude + dot.steps) * (1 + 0x1p-10);
  score.spread += bounds.score_relative * (std::fabs(score.value) + score.spread);
  score.spread += 2 * dims * kDoubleUnit * scale * dot.magnitude;  // float64's own.
  score.spread += (scale * dims + 1) * kFloatLeast;                // Subnormal partial sums.
  if (view.softcap != 0) {
    const double cap = view.softcap;
    // s / c rounds once; tanh's slope is at most 1; the product with c rounds once.
    const double argument = score.value / cap;
    const double spread = (score.spread / std::fabs(cap)) * (1 + kFloatUnit) +
                          kFloatUnit * std::fabs(argument) + kFloatLeast;
    score.value = cap * std::tanh(argument);
    const double lowest = std::tanh(argument - spread);
    const double highest = std::tanh(argument + spread);
    const double middle = std::tanh(argument);
    const double moved = std::max(highest - middle, middle - lowest);
    score.spread = std::fabs(cap) * (moved + (bounds.tanh_relative + kFloatUnit + 4 * kDoubleUnit) *
                                                 (std::fabs(middle) + moved)) +
                   kFloatLeast;
  }
  score.spread += bounds.factor_relative * (std::fabs(score.value) + score.spread);
  if (std::isnan(score.spread)) score.spread = kInfinity;
  return score;
}

// Sums of one query head over the keys it sees, relative to its greatest score.
struct Weights {
  std::vector<double> exact;   // w_j = exp(s_j - M)
  std::vector<double> spread;  // e_j: the form's weight is within w_j +- e_j, times a common factor
  double sum = 0;              // sum w_j, the sink included
  double least_sum = 0;        // the least the form's sum may be, before its chain
  double greatest_sum = 0;
  double sink_spread = 0;
  double common = 1;    // the common factor lies between 1 / common and common
  double least_p = 1;   // the form's P of the greatest score is at least this
  double relative = 0;  // the greatest e_j / w_j
};

// One weight's spread: exp(t + x)(1 + eta) - exp(t), without cancellation where x is small.
double weight_spread(double distance, double weight, double argument, double eta) {
  if (distance == -kInfinity) return 0;  // A score of -inf is exact and its weight +0.
  if (argument < 1) {
    const double grown = std::expm1(argument);
    return weight * (grown * (1 + eta) + eta);
  }
  return std::max(0.0, std::exp(distance + argument) * (1 + eta) - weight);
}

// Tiles after the first whose maximum may pass every earlier one's, as far as the spreads allow.
std::int32_t moves_of(std::span<const Score> scores, std::int32_t first_position,
                      std::int32_t tile_keys) {
  std::int32_t moves = 0;
  double running = -kInfinity;  // The least that the running maximum may be.
  std::size_t j = 0;
  while (j < scores.size()) {
    const auto position = static_cast<std::size_t>(first_position) + j;
    const auto tile = static_cast<std::size_t>(tile_keys);
    const std::size_t end = std::min(scores.size(), j + tile - position % tile);
    const bool is_first = j == 0;
    double most = -kInfinity;
    double least = -kInfinity;
    for (; j < end; ++j) {
      most = std::max(most, scores[j].value + scores[j].spread);
      least = std::max(least, scores[j].value - scores[j].spread);
    }
    if (!is_first && most > running) ++moves;
    running = std::max(running, least);
  }
  return moves;
}

void weigh(const RowView& view, std::span<const Score> scores, const float* sink,
           const FormBounds& bounds, Weights& weights) {
  const std::size_t keys = scores.size();
  weights.exact.resize(keys);
  weights.spread.resize(keys);
  double greatest = sink != nullptr ? static_cast<double>(*sink) : -kInfinity;
  double greatest_spread = 0;
  for (const Score& score : scores) {
    // NaN has to win: a comparison would drop it.
    if (score.value > greatest || std::isnan(score.value)) greatest = score.value;
    if (score.value != -kInfinity) greatest_spread = std::max(greatest_spread, score.spread);
    if (std::isnan(greatest)) break;
  }
  weights.common = std::exp(greatest_spread);
  constexpr double kLog2E = 1.4426950408889634;
  if (bounds.greatest_p > 0) {
    weights.least_p =
        std::exp2(-bounds.greatest_p * kLog2E * (std::fabs(greatest) + greatest_spread));
  }
  double count = bounds.exponentials;
  if (bounds.tile_keys > 0) count += moves_of(scores, view.first_position, bounds.tile_keys);
  const double eta = std::expm1(count * std::log1p(bounds.exponential)) + 4 * kDoubleUnit;
  const auto add = [&](double value, double spread, double& exact, double& moved) {
    const double distance = value - greatest;
    exact = std::exp(distance);
    // The distance as the form sees it is longer by both spreads; float64's own error is 2^-52 of
    // it, far below the form's 2^-24.
    const double rounding =
        (bounds.argument + 2 * kDoubleUnit) * (-distance + spread + greatest_spread);
    moved = weight_spread(distance, exact, spread + rounding, eta);
    weights.sum += exact;
    if (exact > 0) {
      weights.least_sum += exact * (exact / (exact + moved));
      weights.relative = std::max(weights.relative, moved / exact);
    }
    weights.greatest_sum += exact + moved;
  };
  for (std::size_t j = 0; j < keys; ++j) {
    add(scores[j].value, scores[j].spread, weights.exact[j], weights.spread[j]);
  }
  if (sink != nullptr) {
    double exact = 0;
    const auto logit = static_cast<double>(*sink);
    // Where a factor is used, the sink's product with log2(e) rounds: 1.25 u of it.
    const double spread = bounds.factor_relative > 0 ? 1.25 * kFloatUnit * std::fabs(logit) : 0;
    add(logit, spread, exact, weights.sink_spread);
  }
}

// What the passes over V gather for one query head.
struct Sums {
  std::vector<double> numerator;  // sum w_j v_j
  std::vector<double> moved;      // sum e_j |v_j - out|
  std::vector<double> magnitude;  // sum (w_j + e_j) |v_j|
  std::vector<double> tile;       // sum w_j v_j of the tile so far
  std::vector<double> steps;      // sum over the MMA steps of P x V of |the tile so far|
};

void to_double(const float* from, std::size_t count, double* to) {
  for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<double>(from[i]);
}

void add_products(double weight, const double* v, std::size_t dims, double* numerator) {
  for (std::size_t d = 0; d < dims; ++d) numerator[d] += weight * v[d];
}

// Joins the tile so far to the numerator.
void end_tile(Sums& sums) {
  for (std::size_t d = 0; d < sums.tile.size(); ++d) {
    sums.numerator[d] += sums.tile[d];
    sums.tile[d] = 0;
  }
}

void add_step(Sums& sums) {
  for (std::size_t d = 0; d < sums.tile.size(); ++d) sums.steps[d] += std::fabs(sums.tile[d]);
}

void add_spreads(double spread, double most, const double* v, const double* out, std::size_t dims,
                 double* moved, double* magnitude) {
  for (std::size_t d = 0; d < dims; ++d) {
    moved[d] += spread * std::fabs(v[d] - out[d]);
    magnitude[d] += most * std::fabs(v[d]);
  }
}

// The least and greatest value of each dim.
struct Hull {
  std::vector<float> least;
  std::vector<float> greatest;
};

Hull hull_of(const RowView& view) {
  const auto dims = static_cast<std::size_t>(view.head_dim);
  Hull hull{std::vector<float>(dims, std::numeric_limits<float>::infinity()),
            std::vector<float>(dims, -std::numeric_limits<float>::infinity())};
  for (std::size_t j = 0; j < static_cast<std::size_t>(view.keys); ++j) {
    const float* v = view.values_f32.data() + j * dims;
    for (std::size_t d = 0; d < dims; ++d) {
      hull.least[d] = std::min(hull.least[d], v[d]);
      hull.greatest[d] = std::max(hull.greatest[d], v[d]);
    }
  }
  return hull;
}

// The radius around float64's output, and the hull of the values that no weights can leave.
void close(const RowView& view, const FormBounds& bounds, const Weights& weights, const Sums& sums,
           const Hull& hull, std::size_t head, RowRange& range) {
  const auto dims = static_cast<std::size_t>(view.head_dim);
  const auto keys = static_cast<double>(view.keys);
  const double own = 2 * keys * kDoubleUnit;  // float64's sums.
  const double numerator_chain = bounds.numerator_chain + own;
  const double denominator_chain = bounds.denominator_chain + own;
  const double least_sum = weights.least_sum * (1 - denominator_chain);
  // Absolute errors arise beside the form's own sum of weights, which is at least 1 (the greatest
  // weight is exactly 1, or 1 but for what the maximum's rounding leaves) and at least what
  // float64's is, but for the common factor.
  const double floor =
      weights.least_p * std::max(1 - denominator_chain, least_sum / weights.common) / (1 + 0x1p-10);
  // A tile's accumulator as the form has it is larger by the weights' spread and P's error, at each
  // of its four steps (eight with halves).
  const double value_steps = bounds.value_step;
  const double carried =
      (1 + bounds.p_relative) * (1 + 4 * bounds.halves * (weights.relative + bounds.p_relative));
  for (std::size_t d = 0; d < dims; ++d) {
    const std::size_t at = head * dims + d;
    const double exact = range.exact[at];
    if (!std::isfinite(exact)) {
      range.lowest[at] = range.highest[at] = exact;
      continue;
    }
    const double size = std::fabs(exact);
    double least = static_cast<double>(hull.least[d]);
    double greatest = static_cast<double>(hull.greatest[d]);
    const double largest = std::max(std::fabs(least), std::fabs(greatest));
    const double absolute =
        keys * (bounds.underflow * (largest + size + 1) + bounds.p_absolute * largest) / floor;
    const double magnitude = sums.magnitude[d];
    double radius = sums.moved[d] + size * weights.sink_spread;
    radius += bounds.p_relative * magnitude + numerator_chain * magnitude * (1 + bounds.p_relative);
    radius += value_steps * (sums.steps[d] + magnitude * carried);
    radius += size * denominator_chain * weights.greatest_sum;
    radius = radius / least_sum + absolute;
    radius += (bounds.division + 4 * kDoubleUnit) * (size + radius);
    if (std::isnan(radius)) radius = kInfinity;
    // Weights of any size keep the quotient between the least and the greatest value, but for the
    // chains and P's representation; a sink pulls it toward zero.
    const double slack = 2 * largest *
                             (numerator_chain + denominator_chain + bounds.p_relative +
                              bounds.division + 8 * bounds.halves * bounds.value_step) +
                         absolute;
    if (!view.sinks.empty()) {
      least = std::min(least, 0.0);
      greatest = std::max(greatest, 0.0);
    }
    double lowest = exact - radius;
    double highest = exact + radius;
    if (std::isfinite(slack)) {
      lowest = std::min(exact, std::max(lowest, least - slack));
      highest = std::max(exact, std::min(highest, greatest + slack));
    }
    range.lowest[at] = lowest - kFloatLeast;
    range.highest[at] = highest + kFloatLeast;
  }
}

}  // namespace

RowView view_of(const Problem& problem, std::int32_t row, std::int32_t kv_head) {
  const Dtype dtype = problem.shape.dtype;
  RowView view;
  view.head_dim = problem.head_dim();
  view.heads = static_cast<std::int32_t>(problem.shape.gqa_ratio);
  view.first_position = problem.first_key(row);
  view.keys = problem.last_key(row) - view.first_position + 1;
  view.scale = static_cast<double>(problem.scale);
  if (problem.shape.softcap == Switch::kOn) view.softcap = static_cast<double>(problem.softcap);
  const std::int32_t first_head = kv_head * view.heads;
  if (problem.shape.sinks == Switch::kOn) {
    view.sinks =
        std::span(problem.sinks)
            .subspan(static_cast<std::size_t>(first_head), static_cast<std::size_t>(view.heads));
  }
  const auto dims = static_cast<std::size_t>(view.head_dim);
  view.queries.reserve(static_cast<std::size_t>(view.heads) * dims);
  for (std::int32_t head = first_head; head < first_head + view.heads; ++head) {
    const std::uint16_t* q = problem.q.data() + problem.q_at(row, head);
    for (std::size_t d = 0; d < dims; ++d) view.queries.push_back(value_of(q[d], dtype));
  }
  const std::size_t elems = static_cast<std::size_t>(view.keys) * dims;
  view.keys_f32.resize(elems);
  view.values_f32.resize(elems);
  for (std::int32_t j = 0; j < view.keys; ++j) {
    const std::int32_t position = view.first_position + j;
    const std::uint16_t* k = problem.k.data() + problem.k_at(row, position, kv_head);
    const std::uint16_t* v = problem.v.data() + problem.v_at(row, position, kv_head);
    float* k_to = view.keys_f32.data() + static_cast<std::size_t>(j) * dims;
    float* v_to = view.values_f32.data() + static_cast<std::size_t>(j) * dims;
    for (std::size_t d = 0; d < dims; ++d) k_to[d] = float_of(k[d], dtype);
    for (std::size_t d = 0; d < dims; ++d) v_to[d] = float_of(v[d], dtype);
  }
  return view;
}

void range_of(const RowView& view, const FormBounds& bounds, RowRange& range) {
  const auto dims = static_cast<std::size_t>(view.head_dim);
  const auto heads = static_cast<std::size_t>(view.heads);
  const auto keys = static_cast<std::size_t>(view.keys);

  std::vector<Score> scores(heads * keys);
  std::vector<double> block(kStepKeys * dims);
  const auto slice_dims = static_cast<std::size_t>(bounds.slice_dims);
  for (std::size_t j = 0; j < keys; ++j) {
    to_double(view.keys_f32.data() + j * dims, dims, block.data());
    for (std::size_t head = 0; head < heads; ++head) {
      const Dot dot = dot_of(view.queries.data() + head * dims, block.data(), dims, slice_dims);
      scores[head * keys + j] = score_of(dot, view, bounds);
    }
  }

  std::vector<Weights> weights(heads);
  std::vector<Sums> sums(heads);
  for (std::size_t head = 0; head < heads; ++head) {
    const float* sink = view.sinks.empty() ? nullptr : &view.sinks[head];
    weigh(view, std::span(scores).subspan(head * keys, keys), sink, bounds, weights[head]);
    const std::vector<double> zeros(dims);
    sums[head] = {zeros, zeros, zeros, zeros, zeros};
  }

  // Blocks of 16 keys at absolute positions, as float64: small enough for the L1 cache, and just
  // what a MMA step holds.
  const auto first = static_cast<std::size_t>(view.first_position);
  const auto over_blocks = [&](auto&& visit) {
    for (std::size_t from = 0; from < keys;) {
      const std::size_t end = std::min(keys, from + kStepKeys - (first + from) % kStepKeys);
      to_double(view.values_f32.data() + from * dims, (end - from) * dims, block.data());
      for (std::size_t head = 0; head < heads; ++head) visit(head, from, end);
      from = end;
    }
  };
  const auto tile_keys = static_cast<std::size_t>(bounds.tile_keys);
  over_blocks([&](std::size_t head, std::size_t from, std::size_t end) {
    Sums& sum = sums[head];
    if (tile_keys > 0 && (first + from) % tile_keys == 0) end_tile(sum);
    if (bounds.value_step > 0) add_step(sum);
    for (std::size_t j = from; j < end; ++j) {
      add_products(weights[head].exact[j], block.data() + (j - from) * dims, dims, sum.tile.data());
    }
    if (bounds.value_step > 0 && bounds.halves == 2) add_step(sum);
  });
  range.exact.resize(heads * dims);
  range.lowest.resize(heads * dims);
  range.highest.resize(heads * dims);
  for (std::size_t head = 0; head < heads; ++head) {
    end_tile(sums[head]);
    for (std::size_t d = 0; d < dims; ++d) {
      range.exact[head * dims + d] = sums[head].numerator[d] / weights[head].sum;
    }
  }
  over_blocks([&](std::size_t head, std::size_t from, std::size_t end) {
    for (std::size_t j = from; j < end; ++j) {
      const double spread = weights[head].spread[j];
      add_spreads(spread, weights[head].exact[j] + spread, block.data() + (j - from) * dims,
                  range.exact.data() + head * dims, dims, sums[head].moved.data(),
                  sums[head].magnitude.data());
    }
  });
  const Hull hull = hull_of(view);
  for (std::size_t head = 0; head < heads; ++head) {
    close(view, bounds, weights[head], sums[head], hull, head, range);
  }
}

}  // namespace broach::contract::window_rows
