#include "tools/contract/contract.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "broach/version.hpp"
#include "kernel_src/embedded.hpp"
#include "specializer/shape.hpp"
#include "tools/contract/report.hpp"
#include "tools/contract/variants.hpp"

namespace broach {
extern const std::span<const EmbeddedFile> kContractDigests;
}  // namespace broach

namespace broach::contract {
namespace {

constexpr Gate kGates[] = {Gate::kNonFinite, Gate::kRepeat, Gate::kShapes, Gate::kSums};

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
  }
  for (const Control& control : request.controls) {
    wanted.push_back({control_case(control).recipe.shape, {std::string(control.name), {}}});
  }
  return wanted;
}

// Failures are left to the gates, which name the kernel.
void compile_for(const Bench& bench, const std::vector<Wanted>& wanted, std::uint32_t jobs) {
  const specializer::Target& target = bench.device->target();
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < wanted.size(); i = next++) {
      auto plan = specializer::plan(wanted[i].shape, target, wanted[i].variant);
      if (plan) (void)bench.forge->obtain(*plan, specializer::OnMiss::kCompile).ok();
    }
  };
  std::vector<std::jthread> others;
  for (std::uint32_t i = 1; i < jobs; ++i) others.emplace_back(work);
  work();
}

void compile_all(const Bench& bench, const ContractRequest& request) {
  const std::uint32_t jobs = request.compile_jobs > 0
                                 ? request.compile_jobs
                                 : std::max(1U, std::thread::hardware_concurrency());
  compile_for(bench, wanted_by(request), jobs);
  if (request.host == nullptr) return;
  std::vector<Wanted> on_host;
  for (const DecodeCase& one : request.cases) on_host.push_back({one.recipe.shape, {}});
  compile_for(*request.host, on_host, jobs);
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
  for (const Gate gate : kGates) {
    report.gates.push_back(
        run_gate(gate, {&*kernel, &one, request.host, pinned_digest(one.name), request.threads}));
  }
  const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  bench.forge->cache().record_receipt({report.key, std::string(bench.device->name()),
                                       std::string(bench.device->driver()), receipt_json(report),
                                       BROACH_VERSION, now.count()});
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
  for (const LimitReport& limit : limits) problems += limit.problems.size();
  return static_cast<std::uint32_t>(problems);
}

bool ContractReport::passed() const noexcept {
  return kernels.size() + controls.size() + limits.size() > 0 &&
         failed() + missed() + limit_problems() == 0;
}

ContractRequest whole_contract(const specializer::Target& target) {
  ContractRequest request;
  const bool host = target.vendor == specializer::Vendor::kHost;
  const CaseSize size = host ? CaseSize::kCut : CaseSize::kFull;
  for (const Arith arith : {Arith::kChunk256, Arith::kTile64}) {
    std::vector<DecodeCase> cases = ragged_decodes(arith);
    for (DecodeCase& served : served_decodes(size, arith)) cases.push_back(std::move(served));
    for (DecodeCase& one : cases) {
      if (specializer::check(one.recipe.shape, target)) request.cases.push_back(std::move(one));
    }
  }
  for (const Control& control : controls()) {
    if (specializer::check(control_case(control).recipe.shape, target)) {
      request.controls.push_back(control);
    }
  }
  for (const std::string_view name : specializer::known_targets()) {
    request.limit_targets.emplace_back(name);
  }
  for (const std::uint32_t head_dim : {64U, 256U, 512U}) {
    WindowRowsShape shape = gemma_decode(1, CaseSize::kCut).recipe.shape;
    shape.head_dim = head_dim;
    request.limit_shapes.push_back(shape);
    shape.dtype = Dtype::kF16;
    shape.gqa_ratio = 8;
    request.limit_shapes.push_back(shape);
  }
  return request;
}

ContractReport run_contract(const Bench& bench, const ContractRequest& request) {
  ContractReport report;
  report.target = bench.device->target().name;
  report.device = bench.device->name();
  report.driver = bench.device->driver();
  say(request, fmt::format("compiling for {}", report.target));
  compile_all(bench, request);
  for (const DecodeCase& one : request.cases) {
    report.kernels.push_back(run_case(bench, request, one));
    say(request, line_of(report.kernels.back()));
  }
  for (const Control& control : request.controls) {
    report.controls.push_back(try_control(control, bench, request.threads));
    say(request, line_of(report.controls.back()));
  }
  for (const std::string& name : request.limit_targets) {
    auto target = specializer::parse_target(name);
    if (!target) {
      report.limits.push_back({name, "", 0, 0, {target.error().message}, {}, ""});
      continue;
    }
    report.limits.push_back(check_limits(*bench.forge, *target, request.limit_shapes));
    say(request, line_of(report.limits.back()));
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
  const std::string_view text = kContractDigests.front().bytes;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    // "<32 hex digits>  <case name>"
    if (line.size() > 34 && line.substr(34) == case_name) return line.substr(0, 32);
    at = end + 1;
  }
  return {};
}

}  // namespace broach::contract
