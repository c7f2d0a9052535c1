#include "tools/broach/contract.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <vector>

#include "broach/runtime.hpp"
#include "runtime/runtime_state.hpp"
#include "specializer/host_model.hpp"
#include "tools/broach/toolchains.hpp"
#include "tools/contract/families.hpp"
#include "tools/contract/harness/contract.hpp"
#include "tools/contract/harness/limits_scope.hpp"
#include "tools/contract/harness/report.hpp"

namespace broach::tool {
namespace {

constexpr int kLimitsGate = 5;

struct Wanted {
  std::string device;
  std::string only;
  bool list = false;
  bool digests = false;
  std::vector<int> gates{1, 2, 3, 4, 5};
  std::uint32_t jobs = 0;
  std::string sweep;
  std::vector<std::string> limits_for;
  std::string hiprtc_prefix;
};

Result<Runtime> open(const Session& session, const std::string& device) {
  Options options = session.options();
  options.device = device.empty() ? session.own_device() : device;
  return Runtime::create(std::move(options));
}

contract::Bench bench_of(Runtime& runtime) {
  return {runtime.state().device.get(), &runtime.state().forge};
}

// The families that `--family NAME` names, or every one there is.
Result<std::vector<const contract::ContractFamily*>> families_of(Session& session) {
  if (auto known = session.families(); !known) return known.error();
  const auto all = contract::families();
  if (session.family_names().empty()) return std::vector(all.begin(), all.end());
  std::vector<const contract::ContractFamily*> families;
  for (const std::string& name : session.family_names()) {
    auto family = contract::find_family(name);
    if (!family) return family.error();
    families.push_back(*family);
  }
  return families;
}

// `--only WORD` keeps the cases and controls whose names hold it.
void keep_only(const std::string& word, contract::ContractRequest& request) {
  if (word.empty()) return;
  std::erase_if(request.cases, [&](const std::shared_ptr<const contract::Case>& one) {
    return one->name().find(word) == std::string::npos;
  });
  std::erase_if(request.controls, [&](const contract::Control& one) {
    return contract::name_of(one).find(word) == std::string::npos;
  });
}

// A chip has the cores and the time; the host's run is what a change waits for.
contract::Sweep sweep_of(const Wanted& wanted, const specializer::Target& target) {
  const bool chip = target.vendor != specializer::Vendor::kHost;
  const bool whole = wanted.sweep.empty() ? chip : wanted.sweep == "whole";
  return whole ? contract::Sweep::kWhole : contract::Sweep::kQuick;
}

// Who names targets gets them; who says that the sweep is to be quick, one chip of each generation.
void keep_limits(const Wanted& wanted, std::span<const contract::ContractFamily* const> families,
                 contract::Sweep sweep, contract::ContractRequest& request) {
  std::vector<contract::LimitScope>& scopes = request.limits.scopes;
  if (scopes.empty()) return;
  if (!wanted.limits_for.empty()) {
    scopes.clear();
    for (const std::string& name : wanted.limits_for) {
      scopes.push_back({name, contract::deepest_kernels(families, sweep)});
    }
  } else if (wanted.sweep == "quick") {
    scopes = contract::limit_scopes(families, sweep, contract::LimitTargets::kGenerations);
  }
}

// `--gates` keeps those gates, and the controls that they have to see.
void keep_gates(const std::vector<int>& gates, contract::ContractRequest& request) {
  const auto left_out = [&](contract::Gate gate) {
    return std::find(gates.begin(), gates.end(), static_cast<int>(gate)) == gates.end();
  };
  std::erase_if(request.gates, left_out);
  std::erase_if(request.controls,
                [&](const contract::Control& control) { return left_out(control.gate); });
  if (request.gates.empty()) request.cases.clear();
  if (std::find(gates.begin(), gates.end(), kLimitsGate) == gates.end()) {
    request.limits.scopes.clear();
  }
}

// A note is one line: a report's further lines become notes of their own.
void note_each(Output& output, std::string_view lines) {
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    output.note(lines.substr(0, end));
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
}

Result<ExitStatus> print_digests(Session& session, Runtime& runtime,
                                 const contract::ContractRequest& request) {
  auto lines = contract::digest_lines(bench_of(runtime), request);
  if (!lines) return lines.error();
  session.output().text(*lines);
  return ExitStatus::kSuccess;
}

Result<ExitStatus> run(Session& session, const Wanted& wanted) {
  auto families = families_of(session);
  if (!families) return families.error();
  auto runtime = open(session, wanted.device);
  if (!runtime) return runtime.error();
  const specializer::Target& target = runtime->state().device->target();
  const contract::Sweep sweep = sweep_of(wanted, target);
  contract::ContractRequest request = contract::contract_of(*families, target, sweep);
  keep_only(wanted.only, request);
  keep_gates(wanted.gates, request);
  keep_limits(wanted, *families, sweep, request);
  request.jobs = wanted.jobs;
  Output& output = session.output();
  if (wanted.list) {
    if (output.json()) {
      output.document(contract::list_json(request));
    } else {
      output.text(contract::list_text(request));
    }
    return ExitStatus::kSuccess;
  }
  if (wanted.digests) return print_digests(session, *runtime, request);

  // A chip's bits are held against the host's where the host can be opened.
  std::unique_ptr<Runtime> host;
  contract::Bench host_bench;
  if (target.vendor != specializer::Vendor::kHost) {
    auto opened = open(session, std::string(specializer::host_target_modelling(target)));
    if (!opened) return opened.error();
    host = std::make_unique<Runtime>(std::move(*opened));
    host_bench = bench_of(*host);
    request.host = &host_bench;
  }
  const Toolchains toolchains(session.options(), wanted.hiprtc_prefix, runtime->state().forge);
  request.limits.toolchains = toolchains.all();
  request.progress = [&output](std::string_view lines) { note_each(output, lines); };
  const contract::ContractReport report = contract::run_contract(bench_of(*runtime), request);
  if (output.json()) {
    output.document(contract::to_json(report));
  } else {
    output.text(contract::failures_of(report) + contract::summary_of(report) + "\n");
  }
  return report.passed() ? ExitStatus::kSuccess : ExitStatus::kDoesNotHold;
}

}  // namespace

void add_contract(CommandLine& line) {
  auto wanted = std::make_shared<Wanted>();
  Command command =
      line.add("contract", "Prove the kernels on a device: gates, planted controls, limits");
  command.add_option("--target,--device", wanted->device,
                     "Where to run: host, host:step=k8, cuda, cuda:N");
  command.add_option("--only", wanted->only, "Cases and controls whose names hold this word");
  command.add_flag("--list", wanted->list, "Print kernels, controls and bounds; run nothing");
  command.add_flag("--digests", wanted->digests, "Print the outputs' digests, to be pinned");
  command
      .add_option("--gates", wanted->gates, "Gates to run, as 1,2,3,4 (5: every target's limits)")
      .separated_by(',')
      .between(1, kLimitsGate);
  command
      .add_option("--sweep", wanted->sweep,
                  "quick or whole: fewer cases and one chip a generation in gate 5, or all "
                  "(default: quick cases on the host, and every target in gate 5)")
      .one_of({"quick", "whole"});
  command.add_option("--limits-for", wanted->limits_for, "Targets of gate 5 (default: the sweep's)")
      .separated_by(',');
  command.add_option("--hiprtc-prefix", wanted->hiprtc_prefix,
                     "Another hiprtc for gate 5, as tools/fetch-hiprtc unpacks one (default: "
                     "BROACH_HIPRTC_PREFIX)");
  command.add_option("--jobs", wanted->jobs, "Compiles and cases at a time (default: one a core)")
      .positive();
  command.footer(
      "Ends with a SUMMARY line. Exit status 0 only when every kernel passes, every control turns "
      "its gate red and no limit differs.");
  command.action([wanted](Session& session) { return run(session, *wanted); });
}

}  // namespace broach::tool
