#include "tools/contract/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "cache/limit_fields.hpp"
#include "runtime/launch_checks.hpp"
#include "specializer/compilers.hpp"
#include "specializer/limits.hpp"
#include "specializer/plan.hpp"
#include "specializer/shape.hpp"

namespace broach::contract {
namespace {

// A driver counts what it adds itself under these; registers, memory and threads are the binary's.
constexpr std::string_view kLiveFields[] = {"registers", "static_shared", "max_threads"};

const LaunchLimits* named(const std::vector<LaunchLimits>& limits, std::string_view function) {
  const auto found = std::find_if(limits.begin(), limits.end(), [&](const LaunchLimits& one) {
    return one.function == function;
  });
  return found == limits.end() ? nullptr : &*found;
}

// Why a compiler cannot build for the plan's target at all; empty when it builds an empty source
// with the plan's options. One try, one worker: what dies on an empty source dies on every kernel.
std::string unknown_target(specializer::Compilers& compilers, specializer::Plan plan) {
  plan.sources.front().bytes = "\n";
  plan.sources.resize(1);
  plan.entries.clear();
  auto compiled = compilers.compile(plan);
  return compiled ? std::string() : compiled.error().message;
}

void add_once(std::vector<std::string>& lines, std::string line) {
  if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(std::move(line));
}

class Checker {
 public:
  Checker(specializer::Forge& forge, const specializer::Target& target, LimitReport& report)
      : forge_(forge), target_(target), report_(report) {}

  void check(const WindowRowsShape& shape) {
    auto plan = specializer::plan(shape, target_);
    if (!plan) return problem(plan.error().message);
    auto artifact = forge_.obtain(*plan, specializer::OnMiss::kCompile);
    if (!artifact) return problem(artifact.error().message);
    ++report_.binaries;
    const cache::Object& object = *artifact->object;
    auto again = specializer::read_limits(*plan, object.payload, object.provenance.log);
    if (!again) return problem(again.error().message);
    std::vector<LaunchLimits> recorded;
    if (auto rows = forge_.cache().limits()) {
      for (cache::EntryLimits& row : *rows) {
        if (row.key == object.key.key) recorded.push_back(std::move(row.limits));
      }
    } else {
      problem("the index cannot be read: " + rows.error().message);
    }
    std::vector<LaunchLimits> live;
    if (auto rows = forge_.cache().device_limits(object.key.key)) {
      for (cache::DeviceLimits& row : *rows) live.push_back(std::move(row.limits));
    }
    for (const specializer::KernelEntry& entry : plan->entries) {
      ++report_.functions;
      check_entry(entry, object.limits, *again, recorded, live);
    }
  }

 private:
  void problem(std::string words) {
    report_.problems.push_back(target_.name + ": " + std::move(words));
  }

  void check_entry(const specializer::KernelEntry& entry, const std::vector<LaunchLimits>& stated,
                   const std::vector<LaunchLimits>& again,
                   const std::vector<LaunchLimits>& recorded,
                   const std::vector<LaunchLimits>& live) {
    const LaunchLimits* limits = named(stated, entry.function);
    if (limits == nullptr) return problem(entry.function + " has no limits in its object");
    const auto hold = [&](const std::vector<LaunchLimits>& others, std::string_view where) {
      const LaunchLimits* other = named(others, entry.function);
      if (other == nullptr) return problem(fmt::format("{} is not in {}", entry.function, where));
      const std::string differs = difference(*limits, *other);
      if (!differs.empty()) {
        problem(fmt::format("{}: the object and {} differ: {}", entry.function, where, differs));
      }
    };
    hold(again, "its binary read again");
    hold(recorded, "the index");
    if (const LaunchLimits* reported = named(live, entry.function)) {
      check_live(*limits, *reported);
    }
    if (auto fits = runtime::check_launch(entry, *limits, target_); !fits) {
      problem(fits.error().message);
    }
    if (limits->spill_bytes.value_or(0) > 0 || limits->vgpr_spills.value_or(0) > 0) {
      add_once(report_.notes, fmt::format("{}: {} spills", target_.name, entry.function));
    }
  }

  void check_live(const LaunchLimits& limits, const LaunchLimits& reported) {
    LaunchLimits stated;
    LaunchLimits said;
    for (const cache::LimitField& field : cache::kLimitFields) {
      if (std::find(std::begin(kLiveFields), std::end(kLiveFields), field.name) ==
          std::end(kLiveFields)) {
        continue;
      }
      stated.*field.member = limits.*field.member;
      said.*field.member = reported.*field.member;
    }
    const std::string differs = difference(stated, said);
    if (!differs.empty()) {
      problem(
          fmt::format("{}: the object and the live device differ: {}", limits.function, differs));
    }
  }

  specializer::Forge& forge_;
  const specializer::Target& target_;
  LimitReport& report_;
};

}  // namespace

std::string difference(const LaunchLimits& a, const LaunchLimits& b) {
  std::string words;
  for (const cache::LimitField& field : cache::kLimitFields) {
    const auto& left = a.*field.member;
    const auto& right = b.*field.member;
    if (!left || !right || *left == *right) continue;
    words += fmt::format("{}{} {} and {}", words.empty() ? "" : ", ", field.name, *left, *right);
  }
  return words;
}

LimitReport check_limits(specializer::Forge& forge, const specializer::Target& target,
                         const std::vector<WindowRowsShape>& shapes) {
  LimitReport report;
  report.target = target.name;
  auto compiler = forge.compilers().identity(target);
  if (!compiler) {
    report.not_compiled = compiler.error().message;
    return report;
  }
  report.compiler = compiler->words;
  std::vector<WindowRowsShape> served;
  for (const WindowRowsShape& shape : shapes) {
    if (auto checked = specializer::check(shape, target)) {
      served.push_back(shape);
    } else {
      add_once(report.notes, checked.error().message);
    }
  }
  if (served.empty()) {
    report.not_compiled = "no shape of the contract is served for " + target.name;
    return report;
  }
  if (auto plan = specializer::plan(served.front(), target)) {
    report.not_compiled = unknown_target(forge.compilers(), std::move(*plan));
    if (!report.not_compiled.empty()) return report;
  }
  for (const WindowRowsShape& shape : served) Checker(forge, target, report).check(shape);
  return report;
}

}  // namespace broach::contract
