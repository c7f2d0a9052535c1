#include "tools/contract/harness/gates.hpp"

#include <fmt/core.h>

#include <utility>

namespace broach::contract {
namespace {

constexpr std::size_t kKeptFailures = 8;

}  // namespace

std::string_view name_of(Gate gate) noexcept {
  switch (gate) {
    case Gate::kNonFinite:
      return "non-finite";
    case Gate::kRepeat:
      return "repeat";
    case Gate::kShapes:
      return "shapes";
    case Gate::kSums:
      return "sums";
  }
  return "unknown";
}

void GateReport::fail(std::string words) {
  passed = false;
  if (failures.size() < kKeptFailures) failures.push_back(std::move(words));
}

void GateReport::judge(const RangeReport& report, std::string_view part) {
  range.add(report);
  comparisons += report.checked;
  if (report.passed()) return;
  std::string words = fmt::format("{}: {} outputs out of range and {} of another class", part,
                                  report.out_of_range, report.nonfinite_mismatch);
  if (report.first) words += "; first: " + words_of(*report.first);
  if (report.worst && report.worst->steps_outside > report.first->steps_outside) {
    words += "; worst: " + words_of(*report.worst);
  }
  fail(std::move(words));
}

}  // namespace broach::contract
