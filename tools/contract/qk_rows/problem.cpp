#include "tools/contract/qk_rows/problem.hpp"

#include <cmath>

#include "tools/contract/harness/draws.hpp"
#include "tools/contract/harness/number.hpp"

namespace broach::contract::qk_rows {
namespace {

std::uint64_t name_of(const Recipe& recipe, char tensor, std::uint64_t index) {
  return mixed(mixed(recipe.seed * 257 + static_cast<unsigned char>(tensor)) + index);
}

std::uint16_t value_of_row(const Recipe& recipe, char tensor, const RowAt& at, std::size_t i) {
  const auto who =
      static_cast<std::uint64_t>(at.stream) * 1048573 + static_cast<std::uint64_t>(at.position);
  const std::uint64_t name = name_of(recipe, tensor, who * 65536 + i);
  if (recipe.values == Values::kDrawn) return round_to(bell(name), recipe.shape.dtype);
  const double magnitude = 100 + static_cast<double>(name % 100);
  return round_to(name % 2 == 0 ? magnitude : -magnitude, recipe.shape.dtype);
}

}  // namespace

const std::uint16_t* Problem::head(std::size_t row, std::size_t index) const noexcept {
  if (index < q_heads()) return q.data() + (row * q_heads() + index) * head_dim();
  const std::size_t of_kv = index - q_heads();
  const std::vector<std::uint16_t>& from = of_kv < kv_heads() ? k : v;
  return from.data() + (row * kv_heads() + of_kv % kv_heads()) * head_dim();
}

std::uint16_t* Problem::head(std::size_t row, std::size_t index) noexcept {
  return const_cast<std::uint16_t*>(static_cast<const Problem*>(this)->head(row, index));
}

Problem make_problem(const Recipe& recipe) {
  Problem p;
  p.recipe = recipe;
  const std::size_t d = p.head_dim();
  const bool unit = recipe.values == Values::kUnit;
  for (RowAt at : recipe.rows) {
    for (std::size_t i = 0; i < p.q_heads() * d; ++i) {
      p.q.push_back(value_of_row(recipe, 'q', at, i));
    }
    for (std::size_t i = 0; i < p.kv_heads() * d; ++i) {
      p.k.push_back(value_of_row(recipe, 'k', at, i));
      p.v.push_back(value_of_row(recipe, 'v', at, i));
    }
  }
  const std::size_t pairs = recipe.shape.rope_dim / 2;
  for (std::size_t j = 0; j < pairs; ++j) {
    // At an angle of zero a rotation is exact.
    const double inverse =
        std::pow(recipe.theta, -static_cast<double>(j) / static_cast<double>(pairs));
    p.inverse.push_back(unit ? 0.0F : static_cast<float>(inverse));
  }
  const auto near_one = [&](char tensor, std::size_t i) {
    return unit ? 1.0F : static_cast<float>(1.0 + 0.2 * bell(name_of(recipe, tensor, i)));
  };
  for (std::size_t i = 0; i < d; ++i) {
    p.q_norm.push_back(near_one('n', i));
    p.k_norm.push_back(near_one('m', i));
  }
  for (std::size_t i = 0; i < p.q_heads() * d; ++i) p.scale.push_back(near_one('s', i));
  return p;
}

Problem with_rows(const Problem& problem, const std::vector<std::size_t>& rows) {
  Problem out = problem;
  out.recipe.rows.clear();
  out.q.clear();
  out.k.clear();
  out.v.clear();
  const auto take = [](const std::vector<std::uint16_t>& from, std::vector<std::uint16_t>& to,
                       std::size_t row, std::size_t count) {
    const auto first = from.begin() + static_cast<std::ptrdiff_t>(row * count);
    to.insert(to.end(), first, first + static_cast<std::ptrdiff_t>(count));
  };
  for (const std::size_t row : rows) {
    out.recipe.rows.push_back(problem.recipe.rows[row]);
    take(problem.q, out.q, row, problem.q_heads() * problem.head_dim());
    take(problem.k, out.k, row, problem.kv_heads() * problem.head_dim());
    take(problem.v, out.v, row, problem.kv_heads() * problem.head_dim());
  }
  return out;
}

}  // namespace broach::contract::qk_rows
