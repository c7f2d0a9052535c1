#include "tests/reference/mma_steps.hpp"

#include <algorithm>
#include <span>

#include "tests/kernel_src/mma32_reference.hpp"
#include "tests/kernel_src/tile64_reference.hpp"

namespace broach::test {
namespace {

using contract::window_rows::Problem;

/// One row and query head as the reference takes it: keys and values by position, from 0 on.
StepReference::Row row_of(const Problem& p, std::int32_t row, std::int32_t head) {
  const std::int32_t kv_head = head / static_cast<std::int32_t>(p.shape.gqa_ratio);
  const auto at = [&](const std::vector<std::uint16_t>& values, std::int64_t from) {
    return std::span(values).subspan(static_cast<std::size_t>(from), p.shape.head_dim);
  };
  StepReference::Row made;
  made.q = at(p.q, p.q_at(row, head));
  made.first = p.first_key(row);
  made.last = p.last_key(row);
  made.k.resize(static_cast<std::size_t>(made.last) + 1);
  made.v.resize(made.k.size());
  for (std::int32_t key = made.first; key <= made.last; ++key) {
    const auto position = static_cast<std::size_t>(key);
    made.k[position] = at(p.k, p.k_at(row, key, kv_head));
    made.v[position] = at(p.v, p.v_at(row, key, kv_head));
  }
  made.has_sink = p.shape.sinks == Switch::kOn;
  if (made.has_sink) made.sink = p.sinks[static_cast<std::size_t>(head)];
  return made;
}

template <class Reference>
std::vector<std::uint16_t> outputs_of(const Problem& problem, specializer::MmaStep step) {
  Reference reference;
  reference.half = problem.shape.dtype == Dtype::kBf16 ? Half::kBf16 : Half::kF16;
  reference.p32 = problem.shape.p32 == Switch::kOn;
  reference.softcap_on = problem.shape.softcap == Switch::kOn;
  reference.scale = problem.scale;
  reference.softcap = problem.softcap;
  reference.two_k8 = step == specializer::MmaStep::kTwoK8;
  if constexpr (requires { reference.ex2; }) {
    reference.ex2 = problem.shape.arith == Arith::kTile64Ex2;
  }
  std::vector<std::uint16_t> out(problem.out_elems());
  for (std::int32_t row = 0; row < problem.rows; ++row) {
    for (std::int32_t head = 0; head < problem.heads(); ++head) {
      const std::vector<float> values = reference.attend(row_of(problem, row, head));
      std::transform(values.begin(), values.end(), out.begin() + problem.out_at(row, head),
                     [&](float value) { return reference.rounded(value); });
    }
  }
  return out;
}

}  // namespace

std::vector<std::uint16_t> mma_steps_reference(const Problem& problem, specializer::MmaStep step) {
  return problem.shape.arith == Arith::kMma32 ? outputs_of<Mma32Reference>(problem, step)
                                              : outputs_of<Tile64Reference>(problem, step);
}

}  // namespace broach::test
