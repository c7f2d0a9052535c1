#include "tools/contract/harness/contract.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <utility>

#include "broach/version.hpp"
#include "kernel_src/embedded.hpp"
#include "specializer/shape.hpp"
#include "tools/contract/harness/in_parallel.hpp"
#include "tools/contract/harness/report.hpp"
#include "tools/contract/window_rows/variants.hpp"

namespace broach {
extern const std::span<const EmbeddedFile> kContractDigests;
}  // namespace broach

namespace broach::contract {
namespace {

using Clock = std::chrono::steady_clock;

void say(const ContractRequest& request, std::string_view line) {
  if (request.progress) request.progress(line);
}

struct Wanted {
  WindowRowsShape shape;
  specializer::Variant variant;
};

// Everything the run will load, so that the compilers work side by side before the gates begin.
std::vector<Wanted> wanted_by(const ContractRequest& request) {
  std::vector<Wanted> wanted;
  for (const DecodeCase& one : request.cases) {
    wanted.push_back({one.recipe.shape, {}});
    for (const ShapeVariant& variant : variants_of(one)) {
      wanted.push_back({variant.shape, variant.variant});
    }
    if (const auto twin = other_form(one.recipe.shape)) wanted.push_back({*twin, {}});
  }
  for (const Control& control : request.controls) {
    wanted.push_back({control_case(control).recipe.shape, {std::string(control.name), {}}});
  }
  return wanted;
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Failures are left to the gates, which name the kernel. How many plans there were.
std::size_t compile_for(const Bench& bench, const std::vector<Wanted>& wanted, std::uint32_t jobs) {
  const specializer::Target& target = bench.device->target();
  std::map<std::string, specializer::Plan> plans;  // Cases share kernels: each is compiled once.
  for (const Wanted& one : wanted) {
    auto plan = specializer::plan(one.shape, target, one.variant);
    if (plan) plans.try_emplace(plan->shape_json, std::move(*plan));
  }
  std::vector<const specializer::Plan*> each;
  for (const auto& [shape, plan] : plans) each.push_back(&plan);
  in_parallel(each.size(), jobs, [&](std::size_t i) {
    (void)bench.forge->obtain(*each[i], specializer::OnMiss::kCompile).ok();
  });
  return each.size();
}

void compile_all(const Bench& bench, const ContractRequest& request) {
  const auto compile = [&](const Bench& on, const std::vector<Wanted>& wanted) {
    const Clock::time_point start = Clock::now();
    const std::size_t plans = compile_for(on, wanted, request.jobs);
    say(request, fmt::format("{} kernels for {} in {:.1f} s", plans, on.device->target().name,
                             seconds_since(start)));
  };
  compile(bench, wanted_by(request));
  if (request.host == nullptr) return;
  std::vector<Wanted> on_host;
  for (const DecodeCase& one : request.cases) on_host.push_back({one.recipe.shape, {}});
  compile(*request.host, on_host);
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

struct PinnedDigest {
  std::string_view digest;
  std::string_view name;
};

// digests.txt: "<32 hex digits>  <case name>" a line.
const std::vector<PinnedDigest>& pinned_digests() {
  static const std::vector<PinnedDigest> all = [] {
    constexpr std::size_t kDigits = 32;
    const std::string_view text = kContractDigests.front().bytes;
    std::vector<PinnedDigest> pinned;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      const std::string_view line = text.substr(at, end - at);
      if (line.size() > kDigits + 2) {
        pinned.push_back({line.substr(0, kDigits), line.substr(kDigits + 2)});
      }
      at = end + 1;
    }
    return pinned;
  }();
  return all;
}

// The digests are of sm_90's MMA step: of two k8 steps, only what uses no step has these bits.
std::string_view digest_for(const Bench& bench, const DecodeCase& one) {
  const bool same_bits =
      bench.device->target().mma_step == specializer::MmaStep::kOneK16 ||
      specializer::resolved(one.recipe.shape, bench.device->target()).arith == Arith::kChunk256;
  return same_bits ? pinned_digest(one.name) : std::string_view{};
}

KernelReport run_case(const Bench& bench, const ContractRequest& request, const DecodeCase& one) {
  KernelReport report;
  report.name = one.name;
  report.shape_json = specializer::to_json(one.recipe.shape);
  auto kernel = Kernel::load(bench, one.recipe.shape);
  if (!kernel) {
    report.error = kernel.error().message;
    return report;
  }
  report.key = kernel->key();
  for (const Gate gate : request.gates) {
    const Clock::time_point start = Clock::now();
    report.gates.push_back(
        run_gate(gate, {&*kernel, &one, request.host, digest_for(bench, one), request.threads}));
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
    report.kernels[i] = run_case(bench, request, request.cases[i]);
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

Result<std::string> digest_lines(const Bench& bench, const ContractRequest& request) {
  compile_all(bench, request);
  std::string lines;
  for (const DecodeCase& one : request.cases) {
    auto problem = make_decode(one.recipe);
    if (!problem) return problem.error();
    auto kernel = Kernel::load(bench, one.recipe.shape);
    if (!kernel) return kernel.error();
    auto out = kernel->run(*problem);
    if (!out) return out.error();
    lines += digest_of(*problem, *out) + "  " + one.name + "\n";
  }
  return lines;
}

std::string_view pinned_digest(std::string_view case_name) {
  for (const PinnedDigest& pinned : pinned_digests()) {
    if (pinned.name == case_name) return pinned.digest;
  }
  return {};
}

std::vector<std::string_view> pinned_names() {
  std::vector<std::string_view> names;
  for (const PinnedDigest& pinned : pinned_digests()) names.push_back(pinned.name);
  return names;
}

}  // namespace broach::contract
