#include "tools/contract/harness/contract.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <utility>

#include "broach/version.hpp"
#include "tools/contract/harness/digests.hpp"
#include "tools/contract/harness/in_parallel.hpp"
#include "tools/contract/harness/limits_scope.hpp"
#include "tools/contract/harness/report.hpp"

namespace broach::contract {
namespace {

using Clock = std::chrono::steady_clock;

void say(const ContractRequest& request, std::string_view line) {
  if (request.progress) request.progress(line);
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Plans of a run: cases share kernels, and each is compiled once.
using Plans = std::map<std::string, specializer::Plan>;

// What cannot be planned is left to the gates, which name the kernel.
void add(Plans& plans, Result<specializer::Plan> plan) {
  if (plan) plans.try_emplace(plan->shape_json, std::move(*plan));
}

// Everything the run will load, so that the compilers work side by side before the gates begin.
Plans wanted_by(const ContractRequest& request, const specializer::Target& target) {
  Plans plans;
  const auto add_case = [&](const Case& one) {
    add(plans, one.plan(target));
    for (specializer::Plan& twin : one.twins(target)) add(plans, std::move(twin));
  };
  for (const auto& one : request.cases) add_case(*one);
  for (const Control& control : request.controls) add_case(*control.tried);
  return plans;
}

void compile(const Bench& bench, const Plans& plans, const ContractRequest& request) {
  const Clock::time_point start = Clock::now();
  std::vector<const specializer::Plan*> each;
  for (const auto& [shape, plan] : plans) each.push_back(&plan);
  in_parallel(each.size(), request.jobs, [&](std::size_t i) {
    (void)bench.forge->obtain(*each[i], specializer::OnMiss::kCompile).ok();
  });
  say(request, fmt::format("{} kernels for {} in {:.1f} s", each.size(),
                           bench.device->target().name, seconds_since(start)));
}

void compile_all(const Bench& bench, const ContractRequest& request) {
  compile(bench, wanted_by(request, bench.device->target()), request);
  if (request.host == nullptr) return;
  Plans on_host;
  for (const auto& one : request.cases) add(on_host, one->plan(request.host->device->target()));
  compile(*request.host, on_host, request);
}

// One receipt a binary, over all cases that tried it: one that fails is not hidden by another that
// passes.
void keep_receipts(const Bench& bench, const std::vector<KernelReport>& kernels) {
  std::map<cache::Key, std::vector<const KernelReport*>> by_key;
  for (const KernelReport& kernel : kernels) {
    if (kernel.error.empty()) by_key[kernel.key].push_back(&kernel);
  }
  const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  for (const auto& [key, cases] : by_key) {
    bench.forge->cache().record_receipt({key, std::string(bench.device->name()),
                                         std::string(bench.device->driver()), receipt_json(cases),
                                         BROACH_VERSION, now.count()});
  }
}

KernelReport run_case(const Bench& bench, const ContractRequest& request, const Case& one) {
  KernelReport report;
  report.name = one.name();
  report.shape_json = one.shape_json();
  auto trial = one.load(bench);
  if (!trial) {
    report.error = trial.error().message;
    return report;
  }
  report.key = (*trial)->key();
  const bool same_bits = one.has_pinned_bits(bench.device->target());
  const GateOptions options{request.host, same_bits ? one.pinned_digest() : std::string_view{},
                            request.threads};
  for (const Gate gate : request.gates) {
    const Clock::time_point start = Clock::now();
    report.gates.push_back(run_gate(gate, **trial, options));
    report.gates.back().seconds = seconds_since(start);
  }
  return report;
}

}  // namespace

bool KernelReport::passed() const noexcept {
  return error.empty() && !gates.empty() &&
         std::all_of(gates.begin(), gates.end(), [](const GateReport& g) { return g.passed; });
}

std::uint32_t ContractReport::failed() const noexcept {
  return static_cast<std::uint32_t>(std::count_if(
      kernels.begin(), kernels.end(), [](const KernelReport& k) { return !k.passed(); }));
}

std::uint32_t ContractReport::missed() const noexcept {
  return static_cast<std::uint32_t>(std::count_if(controls.begin(), controls.end(),
                                                  [](const ControlReport& c) { return !c.red; }));
}

std::uint32_t ContractReport::limit_problems() const noexcept {
  std::size_t problems = 0;
  for (const LimitReport& limit : limits.targets) problems += limit.problems.size();
  return static_cast<std::uint32_t>(problems);
}

std::uint32_t ContractReport::known_findings() const noexcept {
  std::size_t known = 0;
  for (const LimitReport& limit : limits.targets) known += limit.findings.size();
  return static_cast<std::uint32_t>(known);
}

bool ContractReport::passed() const noexcept {
  return kernels.size() + controls.size() + limits.targets.size() > 0 &&
         failed() + missed() + limit_problems() == 0;
}

ContractReport run_contract(const Bench& bench, const ContractRequest& request) {
  ContractReport report;
  report.target = bench.device->target().name;
  report.device = bench.device->name();
  report.driver = bench.device->driver();
  std::mutex reporting;
  const auto done = [&](const std::string& line) {
    const std::scoped_lock lock(reporting);
    say(request, line);
  };
  if (!request.cases.empty() || !request.controls.empty()) compile_all(bench, request);
  report.kernels.resize(request.cases.size());
  in_parallel(request.cases.size(), request.jobs, [&](std::size_t i) {
    report.kernels[i] = run_case(bench, request, *request.cases[i]);
    done(line_of(report.kernels[i]));
  });
  // A receipt is about the whole contract: a run of some gates leaves none.
  if (request.gates.size() == std::size(kKernelGates)) keep_receipts(bench, report.kernels);
  report.controls.resize(request.controls.size());
  in_parallel(request.controls.size(), request.jobs, [&](std::size_t i) {
    report.controls[i] = try_control(request.controls[i], bench, request.threads);
    done(line_of(report.controls[i]));
  });
  if (!request.limits.scopes.empty()) {
    LimitRequest limits = request.limits;
    if (limits.toolchains.empty()) limits.toolchains.push_back({"", bench.forge});
    limits.device = bench.device;
    limits.jobs = request.jobs;
    limits.progress = [&](std::string_view line) { done(std::string(line)); };
    report.limits = check_limits(limits);
    done(words_of(report.limits));
  }
  return report;
}

ContractRequest contract_of(std::span<const ContractFamily* const> families,
                            const specializer::Target& target, Sweep sweep) {
  ContractRequest request;
  request.families.assign(families.begin(), families.end());
  for (const ContractFamily* const family : families) {
    for (auto& one : family->cases(target, sweep)) request.cases.push_back(std::move(one));
    for (Control& one : family->controls(target)) request.controls.push_back(std::move(one));
  }
  request.limits.scopes = limit_scopes(families, sweep, LimitTargets::kEvery);
  return request;
}

Result<std::string> digest_lines(const Bench& bench, const ContractRequest& request) {
  compile_all(bench, request);
  std::string lines;
  for (const auto& one : request.cases) {
    auto trial = one->load(bench);
    if (!trial) return trial.error();
    auto out = (*trial)->run(Poison::kNan);
    if (!out) return out.error();
    lines += digest_of(*out) + "  " + one->name() + "\n";
  }
  return lines;
}

}  // namespace broach::contract
