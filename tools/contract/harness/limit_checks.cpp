#include "tools/contract/harness/limit_checks.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "cache/limit_fields.hpp"
#include "runtime/launch_checks.hpp"
#include "specializer/limits.hpp"
#include "tools/contract/harness/findings.hpp"

namespace broach::contract {
namespace {

// A driver counts what it adds itself under the others; these are the binary's.
constexpr std::string_view kLiveFields[] = {"registers", "static_shared", "max_threads"};

LaunchLimits live_fields_of(const LaunchLimits& limits) {
  LaunchLimits kept;
  for (const cache::LimitField& field : cache::kLimitFields) {
    if (std::find(std::begin(kLiveFields), std::end(kLiveFields), field.name) !=
        std::end(kLiveFields)) {
      kept.*field.member = limits.*field.member;
    }
  }
  return kept;
}

class Checker {
 public:
  Checker(const LimitKernel& kernel, const specializer::Plan& plan, LimitReport& report)
      : kernel_(kernel), plan_(plan), report_(report) {}

  void check(const Statements& statements) {
    const cache::Object& object = *statements.object;
    auto again = specializer::read_limits(plan_, object.payload, object.provenance.log);
    if (!again) return problem(again.error().message);
    for (const specializer::KernelEntry& entry : plan_.entries) {
      ++report_.functions;
      const LaunchLimits* const limits = limits_named(object.limits, entry.function);
      if (limits == nullptr) {
        problem(entry.function + " has no limits in its object");
        continue;
      }
      hold(*limits, *again, "its binary read again");
      hold(*limits, statements.recorded, "the index");
      check_live(*limits, statements.live);
      if (auto fits = runtime::check_launch(entry, *limits, plan_.target); !fits) {
        problem(fits.error().message);
      }
      check_spills(*limits);
    }
  }

 private:
  void problem(std::string_view words) {
    report_.problems.push_back(
        fmt::format("{}: {}: {}", plan_.target.name, words, plan_.shape_json));
  }

  void hold(const LaunchLimits& limits, const std::vector<LaunchLimits>& others,
            std::string_view where) {
    const LaunchLimits* const other = limits_named(others, limits.function);
    if (other == nullptr) return problem(fmt::format("{} is not in {}", limits.function, where));
    compare(limits, *other, where);
  }

  void compare(const LaunchLimits& limits, const LaunchLimits& other, std::string_view where) {
    const auto differs = differences(limits, other);
    if (differs.empty()) return;
    problem(
        fmt::format("{}: the object and {} differ: {}", limits.function, where, words_of(differs)));
  }

  void check_live(const LaunchLimits& limits, const std::vector<LaunchLimits>& live) {
    bool asked = false;
    for (const LaunchLimits& reported : live) {
      if (reported.function != limits.function) continue;
      asked = true;
      LaunchLimits stated = live_fields_of(limits);
      stated.function = limits.function;
      compare(stated, live_fields_of(reported), "the live device");
    }
    if (asked) ++report_.live;
  }

  void check_spills(const LaunchLimits& limits) {
    const Spill spill = spill_of(limits);
    if (!spill.any()) return;
    const std::string words = fmt::format("{} spills {}", limits.function, words_of(spill));
    const Finding* const known =
        known_spill(kernel_.findings, plan_.target.name, limits.function, spill);
    if (known == nullptr) return problem(words + ", and no known finding says why");
    report_.findings.push_back(
        fmt::format("{}: {}: {}; {}", plan_.target.name, words, plan_.shape_json, known->why));
  }

  const LimitKernel& kernel_;
  const specializer::Plan& plan_;
  LimitReport& report_;
};

}  // namespace

Result<LimitsByKey> recorded_limits(cache::Cache& cache) {
  auto rows = cache.limits();
  if (!rows) return rows.error();
  LimitsByKey by_key;
  for (cache::EntryLimits& row : *rows) by_key[row.key].push_back(std::move(row.limits));
  return by_key;
}

void check_statements(const LimitKernel& kernel, const specializer::Plan& plan,
                      const Statements& statements, LimitReport& report) {
  Checker(kernel, plan, report).check(statements);
}

}  // namespace broach::contract
