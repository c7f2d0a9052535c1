#include "tools/contract/harness/family.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace broach::contract {
namespace {

constexpr int kRuns = 5;

// Where two runs differ; empty where they do not.
std::string difference(const Trial& trial, const std::vector<std::byte>& run,
                       const std::vector<std::byte>& first) {
  if (run.size() != first.size()) {
    return fmt::format("{} bytes of outputs, not {}", run.size(), first.size());
  }
  const auto at = std::mismatch(run.begin(), run.end(), first.begin()).first - run.begin();
  if (static_cast<std::size_t>(at) == run.size()) return "";
  std::size_t count = 0;
  for (std::size_t i = 0; i < run.size(); ++i) count += run[i] != first[i] ? 1U : 0U;
  return fmt::format("{} bytes differ; first: {}", count,
                     trial.place_of(static_cast<std::size_t>(at)));
}

}  // namespace

Result<std::unique_ptr<const Runner>> ContractFamily::runner(const RunRequest& /*request*/) const {
  return Error{ErrorCode::kUnsupported, fmt::format("{} has no problem for `broach run`", name()),
               ""};
}

// Poisons alternate, so an element that no run writes, or that depends on what was in the outputs
// or the workspace before, differs from one run to the next.
GateReport gate_repeat(Trial& trial) {
  GateReport report;
  report.gate = Gate::kRepeat;
  std::vector<std::byte> first;
  for (int run = 0; run < kRuns; ++run) {
    auto out = trial.run(run % 2 == 0 ? Poison::kNan : Poison::kFinite);
    if (!out) {
      report.fail(fmt::format("run {}: {}", run + 1, out.error().message));
      return report;
    }
    if (run == 0) {
      first = std::move(*out);
      continue;
    }
    report.comparisons += first.size();
    const std::string differs = difference(trial, *out, first);
    if (!differs.empty()) report.fail(fmt::format("run {} against run 1: {}", run + 1, differs));
  }
  return report;
}

GateReport run_gate(Gate gate, Trial& trial, const GateOptions& options) {
  GateReport report;
  report.gate = gate;
  switch (gate) {
    case Gate::kNonFinite:
      trial.nonfinite(report, options);
      break;
    case Gate::kRepeat:
      return gate_repeat(trial);
    case Gate::kShapes:
      trial.shapes(report, options);
      break;
    case Gate::kSums:
      trial.sums(report, options);
      break;
  }
  return report;
}

}  // namespace broach::contract
