#include "tools/contract/window_rows/shape_trial.hpp"

#include <utility>

namespace broach::contract::window_rows {

bool ShapeTrial::begin() {
  auto made = make_problem(input_.tried->recipe);
  if (!made) {
    report_.fail(made.error().message);
    return false;
  }
  problem_ = std::move(*made);
  auto out = input_.kernel->run(problem_);
  if (!out) {
    report_.fail(out.error().message);
    return false;
  }
  out_ = std::move(*out);
  return true;
}

void ShapeTrial::batch(const std::vector<std::int32_t>& rows, const std::string& name) {
  const Problem taken = problem_.take(rows);
  compare(input_.kernel->run(taken), taken, rows, name);
}

void ShapeTrial::placed(const Kernel& kernel, const Recipe& recipe, const std::string& name) {
  auto made = make_problem(recipe);
  if (!made) return report_.fail(name + ": " + made.error().message);
  compare(kernel.run(*made), *made, first_rows(made->rows), name);
}

void ShapeTrial::compare(const Result<std::vector<std::uint16_t>>& out, const Problem& problem,
                         const std::vector<std::int32_t>& where, const std::string& name) {
  if (!out) return report_.fail(name + ": " + out.error().message);
  report_.comparisons += out->size();
  const std::string differs = difference(problem, *out, problem_, out_, where);
  if (!differs.empty()) report_.fail(name + ": " + differs);
}

std::vector<std::int32_t> own_rows(const Problem& problem) {
  std::vector<std::int32_t> rows;
  for (std::int32_t row = 0; row < problem.rows; ++row) {
    if (problem.last_key(row) == problem.positions[static_cast<std::size_t>(row)]) {
      rows.push_back(row);
    }
  }
  return rows;
}

}  // namespace broach::contract::window_rows
