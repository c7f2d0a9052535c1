#include <fmt/core.h>

#include "tools/contract/window_rows/gates.hpp"

namespace broach::contract {
namespace {

constexpr int kRuns = 5;

}  // namespace

// Poisons alternate, so an element that no run writes, or that depends on what was in the outputs
// or the workspace before, differs from one run to the next.
GateReport gate_repeat(const GateInput& input) {
  GateReport report;
  report.gate = Gate::kRepeat;
  auto problem = make_decode(input.tried->recipe);
  if (!problem) {
    report.fail(problem.error().message);
    return report;
  }
  auto uploaded = DeviceProblem::upload(*input.kernel->bench().device, *problem);
  if (!uploaded) {
    report.fail(uploaded.error().message);
    return report;
  }
  const Decoder decoder = input.kernel->decoder();
  const std::vector<std::int32_t> same = first_rows(problem->rows);
  std::vector<std::uint16_t> first;
  for (int run = 0; run < kRuns; ++run) {
    auto out = uploaded->run(decoder, run % 2 == 0 ? Poison::kNan : Poison::kFinite);
    if (!out) {
      report.fail(fmt::format("run {}: {}", run + 1, out.error().message));
      return report;
    }
    if (run == 0) {
      first = std::move(*out);
      continue;
    }
    report.comparisons += first.size();
    const std::string differs = difference(*problem, *out, *problem, first, same);
    if (!differs.empty()) report.fail(fmt::format("run {} against run 1: {}", run + 1, differs));
  }
  return report;
}

}  // namespace broach::contract
