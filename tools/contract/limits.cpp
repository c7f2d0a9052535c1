#include "tools/contract/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "cache/limit_fields.hpp"
#include "runtime/launch_checks.hpp"
#include "specializer/compilers.hpp"
#include "specializer/limits.hpp"
#include "specializer/plan.hpp"
#include "specializer/shape.hpp"
#include "tools/contract/findings.hpp"
#include "tools/contract/in_parallel.hpp"

namespace broach::contract {
namespace {

using Clock = std::chrono::steady_clock;

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

// A target with a toolchain, and the kernels that it serves.
struct Work {
  Toolchain toolchain;
  specializer::Target target;
  LimitReport report;
  std::vector<std::pair<LimitKernel, specializer::Plan>> plans;
};

// Plans every kernel and tries the compiler once. Leaves no plan where nothing can be compiled.
void prepare(Work& work, const std::vector<LimitKernel>& kernels) {
  LimitReport& report = work.report;
  specializer::Compilers& compilers = work.toolchain.forge->compilers();
  auto compiler = compilers.identity(work.target);
  if (!compiler) {
    report.not_compiled = compiler.error().message;
    return;
  }
  report.compiler = compiler->words;
  for (const LimitKernel& kernel : kernels) {
    if (auto served = specializer::check(kernel.shape, work.target); !served) {
      add_once(report.notes, served.error().message);
      continue;
    }
    auto plan = specializer::plan(kernel.shape, work.target, kernel.variant);
    if (plan) {
      work.plans.emplace_back(kernel, std::move(*plan));
    } else {
      report.problems.push_back(work.target.name + ": " + plan.error().message);
    }
  }
  if (work.plans.empty()) {
    report.not_compiled = "no shape of the contract is served for " + work.target.name;
    return;
  }
  report.not_compiled = unknown_target(compilers, work.plans.front().second);
  if (!report.not_compiled.empty()) work.plans.clear();
}

using LimitsByKey = std::map<cache::Key, std::vector<LaunchLimits>>;

// What the index has of every entry.
Result<LimitsByKey> recorded_limits(cache::Cache& cache) {
  auto rows = cache.limits();
  if (!rows) return rows.error();
  LimitsByKey by_key;
  for (cache::EntryLimits& row : *rows) by_key[row.key].push_back(std::move(row.limits));
  return by_key;
}

class Checker {
 public:
  Checker(Work& work, const LimitsByKey& recorded)
      : forge_(*work.toolchain.forge),
        target_(work.target),
        recorded_(recorded),
        report_(work.report) {}

  void check(const LimitKernel& kernel, const specializer::Plan& plan) {
    auto artifact = forge_.obtain(plan, specializer::OnMiss::kCompile);
    if (!artifact) return problem(artifact.error().message);
    ++report_.binaries;
    const cache::Object& object = *artifact->object;
    report_.limits.push_back({plan.shape_json, object.limits});
    auto again = specializer::read_limits(plan, object.payload, object.provenance.log);
    if (!again) return problem(again.error().message);
    const auto recorded = recorded_.find(object.key.key);
    std::vector<LaunchLimits> live;
    if (auto rows = forge_.cache().device_limits(object.key.key)) {
      for (cache::DeviceLimits& row : *rows) live.push_back(std::move(row.limits));
    }
    for (const specializer::KernelEntry& entry : plan.entries) {
      ++report_.functions;
      check_entry(kernel, entry, object.limits, *again,
                  recorded == recorded_.end() ? std::vector<LaunchLimits>{} : recorded->second,
                  live);
    }
  }

 private:
  void problem(std::string words) {
    report_.problems.push_back(target_.name + ": " + std::move(words));
  }

  void check_entry(const LimitKernel& kernel, const specializer::KernelEntry& entry,
                   const std::vector<LaunchLimits>& stated, const std::vector<LaunchLimits>& again,
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
    check_spills(kernel, *limits);
  }

  void check_spills(const LimitKernel& kernel, const LaunchLimits& limits) {
    const std::int64_t bytes = limits.spill_bytes.value_or(0);
    const std::int64_t registers = limits.vgpr_spills.value_or(0);
    if (bytes == 0 && registers == 0) return;
    const std::string words = fmt::format(
        "{} spills {}: {}", limits.function,
        bytes > 0 ? fmt::format("{} bytes", bytes) : fmt::format("{} vector registers", registers),
        report_.limits.back().kernel);
    const Finding* known =
        known_spill(target_.name, limits.function, kernel.shape, kernel.variant.generic);
    if (known == nullptr) {
      // No two statements differ, so it is no limit problem; `broach warm --max-spill-bytes` is the
      // gate for those who want none.
      return add_once(report_.notes, fmt::format("{}: {}; no known finding", target_.name, words));
    }
    report_.findings.push_back(fmt::format("{}: {}; {}", target_.name, words, known->why));
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
  const LimitsByKey& recorded_;
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

std::vector<LimitReport> check_limits(const LimitRequest& request) {
  std::vector<Work> works;
  for (const std::string& name : request.targets) {
    auto target = specializer::parse_target(name);
    for (const Toolchain& toolchain : request.toolchains) {
      Work work;
      work.toolchain = toolchain;
      work.report.target = name;
      work.report.toolchain = toolchain.name;
      if (target) {
        work.target = *target;
      } else {
        work.report.problems.push_back(target.error().message);
      }
      works.push_back(std::move(work));
      if (!target || target->vendor != specializer::Vendor::kAmd) break;
    }
  }
  const Clock::time_point start = Clock::now();
  in_parallel(works.size(), request.jobs, [&](std::size_t i) {
    if (works[i].report.problems.empty()) prepare(works[i], request.kernels);
  });
  // Compiles side by side whatever target they are for; failures show when the limits are read.
  std::vector<std::pair<specializer::Forge*, const specializer::Plan*>> compiles;
  for (const Work& work : works) {
    for (const auto& [kernel, plan] : work.plans) {
      compiles.emplace_back(work.toolchain.forge, &plan);
    }
  }
  in_parallel(compiles.size(), request.jobs, [&](std::size_t i) {
    (void)compiles[i].first->obtain(*compiles[i].second, specializer::OnMiss::kCompile).ok();
  });
  std::vector<LimitReport> reports;
  for (Work& work : works) {
    if (!work.plans.empty()) {
      auto recorded = recorded_limits(work.toolchain.forge->cache());
      if (!recorded) {
        work.report.problems.push_back("the index cannot be read: " + recorded.error().message);
      }
      const LimitsByKey by_key = recorded ? std::move(*recorded) : LimitsByKey{};
      Checker checker(work, by_key);
      for (const auto& [kernel, plan] : work.plans) checker.check(kernel, plan);
    }
    work.report.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (request.done) request.done(work.report);
    reports.push_back(std::move(work.report));
  }
  return reports;
}

std::vector<std::string> toolchain_differences(const std::vector<LimitReport>& reports) {
  std::vector<std::string> lines;
  for (std::size_t i = 1; i < reports.size(); ++i) {
    const LimitReport& a = reports[i - 1];
    const LimitReport& b = reports[i];
    if (a.target != b.target) continue;
    for (const KernelLimits& before : a.limits) {
      for (const KernelLimits& after : b.limits) {
        if (before.kernel != after.kernel) continue;
        for (const LaunchLimits& function : before.functions) {
          const LaunchLimits* other = named(after.functions, function.function);
          const std::string differs = other == nullptr ? "" : difference(function, *other);
          if (differs.empty()) continue;
          lines.push_back(fmt::format("{}: {} by {} and {}: {}: {}", a.target, function.function,
                                      a.compiler, b.compiler, differs, before.kernel));
        }
      }
    }
  }
  return lines;
}

}  // namespace broach::contract
