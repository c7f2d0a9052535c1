#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "tests/runtime/window_rows/made_problem.hpp"
#include "tools/contract/harness/number.hpp"

namespace broach::test {

/// One row and query head in float64, straight from the definition: [D].
inline std::vector<double> float64_head(const Problem& p, std::int32_t row, std::int32_t head) {
  const auto widen = [&](const std::vector<std::uint16_t>& values, std::int64_t at) {
    return contract::value_of(values[static_cast<std::size_t>(at)], p.shape.dtype);
  };
  const std::int32_t kv_head = head / static_cast<std::int32_t>(p.shape.gqa_ratio);
  const bool sink = p.shape.sinks == Switch::kOn;
  const double logit = sink ? static_cast<double>(p.sinks[static_cast<std::size_t>(head)]) : 0.0;
  double most = sink ? logit : -std::numeric_limits<double>::infinity();
  std::vector<double> scores;
  for (std::int32_t key = p.first_key(row); key <= p.last_key(row); ++key) {
    double dot = 0;
    for (std::int32_t d = 0; d < p.head_dim(); ++d) {
      dot += widen(p.q, p.q_at(row, head) + d) * widen(p.k, p.k_at(row, key, kv_head) + d);
    }
    double s = static_cast<double>(p.scale) * dot;
    if (p.shape.softcap == Switch::kOn) {
      s = static_cast<double>(p.softcap) * std::tanh(s / static_cast<double>(p.softcap));
    }
    scores.push_back(s);
    if (s > most) most = s;
  }
  double l = sink ? std::exp(logit - most) : 0.0;
  std::vector<double> o(p.shape.head_dim, 0.0);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const double weight = std::exp(scores[i] - most);
    l += weight;
    const std::int64_t from = p.v_at(row, p.first_key(row) + static_cast<std::int32_t>(i), kv_head);
    for (std::int32_t d = 0; d < p.head_dim(); ++d) {
      o[static_cast<std::size_t>(d)] += weight * widen(p.v, from + d);
    }
  }
  for (double& value : o) value /= l;
  return o;
}

/// How many outputs are further from float64 than half a unit of the 16-bit type and fp32's noise,
/// or of another class (NaN, either infinity, finite).
inline std::size_t wrong_outputs(const Problem& p, const Outputs& out) {
  const double half_unit = p.shape.dtype == Dtype::kBf16 ? 0x1p-8 : 0x1p-11;
  std::size_t wrong = 0;
  for (std::int32_t row = 0; row < p.rows; ++row) {
    for (std::int32_t head = 0; head < p.heads(); ++head) {
      const std::vector<double> want = float64_head(p, row, head);
      const auto* const got = out.data() + p.out_at(row, head);
      for (std::size_t d = 0; d < want.size(); ++d) {
        const double value = contract::value_of(got[d], p.shape.dtype);
        bool right = false;
        if (std::isfinite(want[d])) {
          right = std::abs(value - want[d]) <= half_unit * std::abs(want[d]) + 1e-5;
        } else {
          right = std::isnan(want[d]) ? std::isnan(value) : value == want[d];
        }
        if (!right) ++wrong;
      }
    }
  }
  return wrong;
}

}  // namespace broach::test
