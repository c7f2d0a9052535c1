#include "tools/contract/harness/limit_differences.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "cache/limit_fields.hpp"
#include "tools/contract/harness/limits.hpp"

namespace broach::contract {
namespace {

void compare(const LimitReport& a, const LimitReport& b, std::vector<LimitDifference>& found) {
  for (const KernelLimits& before : a.limits) {
    const auto after = std::find_if(b.limits.begin(), b.limits.end(), [&](const KernelLimits& one) {
      return one.kernel == before.kernel;
    });
    if (after == b.limits.end()) continue;
    for (const LaunchLimits& function : before.functions) {
      const LaunchLimits* const other = limits_named(after->functions, function.function);
      if (other == nullptr) continue;
      auto fields = differences(function, *other);
      if (fields.empty()) continue;
      found.push_back(
          {a.target, function.function, before.kernel, a.compiler, b.compiler, std::move(fields)});
    }
  }
}

}  // namespace

std::vector<FieldDifference> differences(const LaunchLimits& a, const LaunchLimits& b) {
  std::vector<FieldDifference> fields;
  for (const cache::LimitField& field : cache::kLimitFields) {
    const auto& left = a.*field.member;
    const auto& right = b.*field.member;
    if (left && right && *left != *right) fields.push_back({field.name, *left, *right});
  }
  return fields;
}

std::string words_of(const std::vector<FieldDifference>& fields) {
  std::string words;
  for (const FieldDifference& field : fields) {
    words += fmt::format("{}{} {} and {}", words.empty() ? "" : ", ", field.field, field.before,
                         field.after);
  }
  return words;
}

std::vector<LimitDifference> toolchain_differences(const std::vector<LimitReport>& reports) {
  std::vector<LimitDifference> found;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    for (std::size_t j = i + 1; j < reports.size(); ++j) {
      if (reports[i].target == reports[j].target) compare(reports[i], reports[j], found);
    }
  }
  return found;
}

}  // namespace broach::contract
