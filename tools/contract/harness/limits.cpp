#include "tools/contract/harness/limits.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "runtime/load_plan.hpp"
#include "tools/contract/harness/in_parallel.hpp"
#include "tools/contract/harness/limit_checks.hpp"
#include "tools/contract/harness/report.hpp"

namespace broach::contract {
namespace {

using Clock = std::chrono::steady_clock;
using specializer::Vendor;

// One binary to be made and looked at.
struct Item {
  const LimitKernel* kernel;
  specializer::Plan plan;
  std::optional<Error> error;  ///< Why there is none.
};

// A target with a toolchain, and what it serves of the request.
struct Work {
  Toolchain toolchain;
  specializer::Target target;
  const CompilerReport* compiler = nullptr;
  LimitReport report;
  std::vector<Item> items;
};

// The compilers that the works need, each asked once.
class CompilerReports {
 public:
  explicit CompilerReports(std::vector<CompilerReport>& reports) : reports_(reports) {}

  std::size_t of(const Toolchain& toolchain, Vendor vendor) {
    const auto [at, added] = places_.try_emplace({toolchain.name, vendor}, reports_.size());
    if (added) reports_.push_back(examine(toolchain, vendor));
    return at->second;
  }

 private:
  std::vector<CompilerReport>& reports_;
  std::map<std::pair<std::string, Vendor>, std::size_t> places_;
};

// Why a compiler cannot build for the plan's target at all; empty when it builds an empty source
// with the plan's options. One try, one worker: what dies on an empty source dies on every kernel.
std::string unknown_target(specializer::Compilers& compilers, specializer::Plan plan) {
  plan.sources.assign(1, {plan.sources.front().name, {'\n'}});
  plan.entries.clear();
  auto compiled = compilers.compile(plan);
  return compiled ? std::string() : compiled.error().message;
}

void add_plans(Work& work, const std::vector<LimitKernel>& kernels) {
  LimitReport& report = work.report;
  std::set<std::string> unserved;
  for (const LimitKernel& kernel : kernels) {
    auto plan = kernel.plan(work.target);
    if (!plan) {
      report.problems.push_back(work.target.name + ": " + plan.error().message);
    } else if (!plan->has_value()) {
      unserved.insert(kernel.kind);
    } else {
      work.items.push_back({&kernel, **std::move(plan), {}});
    }
  }
  report.unserved.assign(unserved.begin(), unserved.end());
}

// Plans every kernel, unless nothing can be compiled for the target.
void prepare(Work& work, const std::vector<LimitKernel>& kernels) {
  LimitReport& report = work.report;
  const CompilerReport& compiler = *work.compiler;
  report.compiler = compiler.words;
  const States states = compiler.states(work.target);
  if (!compiler.missing.empty()) {
    report.not_compiled = compiler.missing;
  } else if (states == States::kNo) {
    report.not_compiled = fmt::format("{} does not compile for it", compiler.words);
  } else {
    add_plans(work, kernels);
    if (work.items.empty() && report.problems.empty()) {
      report.not_compiled = "no shape of the contract is served for " + work.target.name;
    } else if (states == States::kUnknown && !work.items.empty()) {
      report.not_compiled =
          unknown_target(work.toolchain.forge->compilers(), work.items.front().plan);
    }
  }
  if (!report.not_compiled.empty()) work.items.clear();
}

std::vector<Work> works_of(const LimitRequest& request) {
  std::vector<Work> works;
  for (const LimitScope& scope : request.scopes) {
    auto target = specializer::parse_target(scope.target);
    for (const Toolchain& toolchain : request.toolchains) {
      Work work;
      work.toolchain = toolchain;
      work.report.target = scope.target;
      if (!target) {
        work.report.problems.push_back(target.error().message);
        works.push_back(std::move(work));
        break;
      }
      work.target = *target;
      const bool several = target->vendor == Vendor::kAmd;
      if (several) work.report.toolchain = toolchain.name;
      works.push_back(std::move(work));
      if (!several) break;
    }
  }
  return works;
}

// Compiles side by side whatever target they are for.
void compile_all(std::vector<Work>& works, std::uint32_t jobs) {
  std::vector<std::pair<Work*, Item*>> compiles;
  for (Work& work : works) {
    for (Item& item : work.items) compiles.emplace_back(&work, &item);
  }
  std::mutex counting;
  in_parallel(compiles.size(), jobs, [&](std::size_t i) {
    const auto& [work, item] = compiles[i];
    auto made = work->toolchain.forge->obtain(item->plan, specializer::OnMiss::kCompile);
    if (!made) {
      item->error = made.error();
      return;
    }
    const std::scoped_lock lock(counting);
    if (!made->compiled) return;
    ++work->report.compiled;
    work->report.compile_seconds += made->object->provenance.compile_ms / 1e3;
  });
}

// Loads a binary on the device that it is for, which then states its limits too.
void ask_device(runtime::Device& device, const Work& work, const Item& item,
                std::vector<std::string>& problems) {
  auto loaded =
      runtime::load_plan(*work.toolchain.forge, device, item.plan, specializer::OnMiss::kCompile);
  if (!loaded) {
    problems.push_back(work.target.name + ": " + loaded.error().message);
    return;
  }
  runtime::record_live_limits(work.toolchain.forge->cache(), device,
                              loaded->artifact.object->key.key, loaded->live);
}

void check(Work& work, const LimitsByKey& recorded, runtime::Device* device) {
  specializer::Forge& forge = *work.toolchain.forge;
  LimitReport& report = work.report;
  for (const Item& item : work.items) {
    if (item.error) {
      report.problems.push_back(work.target.name + ": " + item.error->message);
      continue;
    }
    if (device != nullptr) ask_device(*device, work, item, report.problems);
    auto artifact = forge.obtain(item.plan, specializer::OnMiss::kRefuse);
    if (!artifact) {
      report.problems.push_back(work.target.name + ": " + artifact.error().message);
      continue;
    }
    ++report.binaries;
    const cache::Object& object = *artifact->object;
    report.limits.push_back({item.plan.shape_json, object.limits});
    Statements statements{&object, {}, {}};
    if (const auto rows = recorded.find(object.key.key); rows != recorded.end()) {
      statements.recorded = rows->second;
    }
    if (auto rows = forge.cache().device_limits(object.key.key)) {
      for (cache::DeviceLimits& row : *rows) statements.live.push_back(std::move(row.limits));
    }
    check_statements(*item.kernel, item.plan, statements, report);
  }
}

// Once everything is published: what the index has of each cache.
using Recorded = std::map<cache::Cache*, LimitsByKey>;

Recorded read_indexes(std::vector<Work>& works) {
  Recorded recorded;
  for (Work& work : works) {
    if (work.items.empty()) continue;
    cache::Cache& cache = work.toolchain.forge->cache();
    if (recorded.contains(&cache)) continue;
    auto rows = recorded_limits(cache);
    if (!rows) work.report.problems.push_back("the index cannot be read: " + rows.error().message);
    recorded[&cache] = rows ? *std::move(rows) : LimitsByKey{};
  }
  return recorded;
}

std::uint32_t left_out_of(const std::vector<LimitScope>& scopes) {
  const auto known = specializer::known_targets();
  return static_cast<std::uint32_t>(
      std::count_if(known.begin(), known.end(), [&](std::string_view name) {
        return std::none_of(scopes.begin(), scopes.end(),
                            [&](const LimitScope& scope) { return scope.target == name; });
      }));
}

// One line a target and toolchain. What a compiler's own line has said is not said again for each
// target, unless the target is left without any.
std::vector<std::string> lines_of(const std::vector<Work>& works) {
  std::map<std::string_view, std::uint32_t> compiled;  // Toolchains a target.
  for (const Work& work : works) compiled[work.report.target] += work.report.not_compiled.empty();
  std::vector<std::string> lines;
  for (const Work& work : works) {
    const bool missing = work.compiler != nullptr && !work.compiler->missing.empty();
    const bool left_out = compiled[work.report.target] == 0 && !missing;
    if (work.report.not_compiled.empty() || left_out) lines.push_back(line_of(work.report));
  }
  return lines;
}

}  // namespace

const LaunchLimits* limits_named(const std::vector<LaunchLimits>& limits,
                                 std::string_view function) {
  const auto found = std::find_if(limits.begin(), limits.end(), [&](const LaunchLimits& one) {
    return one.function == function;
  });
  return found == limits.end() ? nullptr : &*found;
}

LimitRun check_limits(const LimitRequest& request) {
  const Clock::time_point start = Clock::now();
  const auto say = [&](std::string_view line) {
    if (request.progress) request.progress(line);
  };
  LimitRun run;
  run.left_out = left_out_of(request.scopes);
  std::vector<Work> works = works_of(request);
  std::vector<std::size_t> compilers(works.size());
  CompilerReports reports(run.compilers);
  for (std::size_t i = 0; i < works.size(); ++i) {
    if (works[i].report.problems.empty()) {
      compilers[i] = reports.of(works[i].toolchain, works[i].target.vendor);
    }
  }
  for (const CompilerReport& compiler : run.compilers) say(line_of(compiler));
  std::map<std::string_view, const std::vector<LimitKernel>*> kernels;
  for (const LimitScope& scope : request.scopes) kernels[scope.target] = &scope.kernels;
  in_parallel(works.size(), request.jobs, [&](std::size_t i) {
    if (!works[i].report.problems.empty()) return;
    works[i].compiler = &run.compilers[compilers[i]];
    prepare(works[i], *kernels[works[i].report.target]);
  });
  compile_all(works, request.jobs);
  const Recorded recorded = read_indexes(works);
  in_parallel(works.size(), request.jobs, [&](std::size_t i) {
    Work& work = works[i];
    if (work.items.empty()) return;
    const bool is_devices = request.device != nullptr &&
                            work.toolchain.name == request.toolchains.front().name &&
                            work.target.name == request.device->target().name;
    check(work, recorded.at(&work.toolchain.forge->cache()), is_devices ? request.device : nullptr);
  });
  for (const std::string& line : lines_of(works)) say(line);
  for (Work& work : works) run.targets.push_back(std::move(work.report));
  run.differences = toolchain_differences(run.targets);
  for (const LimitDifference& difference : run.differences) say(line_of(difference));
  run.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return run;
}

}  // namespace broach::contract
