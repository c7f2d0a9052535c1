#include "tools/contract/harness/controls.hpp"

#include <fmt/core.h>

#include "tools/contract/harness/family.hpp"

namespace broach::contract {

std::string name_of(const Control& control) {
  return fmt::format("{} ({})", control.name, control.kind);
}

ControlReport try_control(const Control& control, const Bench& bench, std::uint32_t threads) {
  ControlReport report{control, false, {}};
  auto trial = control.tried->load(bench);
  if (!trial) {
    report.words = "could not be built: " + trial.error().message;
    return report;
  }
  const GateReport gate =
      run_gate(control.gate, **trial, {nullptr, {}, threads, Until::kFirstFailure});
  report.red = !gate.passed;
  report.words = gate.passed ? "stayed green" : gate.failures.front();
  return report;
}

}  // namespace broach::contract
