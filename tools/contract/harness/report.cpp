#include "tools/contract/harness/report.hpp"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

namespace broach::contract {
namespace {

using Json = nlohmann::ordered_json;

Json range_json(const RangeReport& range) {
  Json json = {{"checked", range.checked},
               {"pinned", range.pinned},
               {"in_range", range.in_range},
               {"out_of_range", range.out_of_range},
               {"nonfinite_matched", range.nonfinite_matched},
               {"nonfinite_mismatch", range.nonfinite_mismatch}};
  if (range.first) json["first"] = words_of(*range.first);
  if (range.worst) json["worst"] = words_of(*range.worst);
  return json;
}

Json gates_json(const KernelReport& report) {
  Json gates = Json::array();
  for (const GateReport& gate : report.gates) {
    gates.push_back({{"gate", static_cast<int>(gate.gate)},
                     {"name", name_of(gate.gate)},
                     {"passed", gate.passed},
                     {"seconds", gate.seconds},
                     {"comparisons", gate.comparisons},
                     {"range", range_json(gate.range)},
                     {"failures", gate.failures},
                     {"notes", gate.notes}});
  }
  return gates;
}

Json control_json(const Control& control) {
  return {{"name", control.name},
          {"what", control.words},
          {"kind", control.kind},
          {"gate", static_cast<int>(control.gate)},
          {"why", control.why}};
}

std::uint64_t comparisons_of(const KernelReport& report) {
  std::uint64_t total = 0;
  for (const GateReport& gate : report.gates) total += gate.comparisons;
  return total;
}

}  // namespace

std::string line_of(const KernelReport& report) {
  if (!report.error.empty()) return fmt::format("FAIL {}: {}", report.name, report.error);
  std::string line = fmt::format("{} {}: {} comparisons", report.passed() ? "pass" : "FAIL",
                                 report.name, comparisons_of(report));
  for (const GateReport& gate : report.gates) {
    line += fmt::format(", gate {} {:.1f} s", static_cast<int>(gate.gate), gate.seconds);
  }
  for (const GateReport& gate : report.gates) {
    for (const std::string& failure : gate.failures) {
      line += fmt::format("\n  gate {} ({}): {}", static_cast<int>(gate.gate), name_of(gate.gate),
                          failure);
    }
  }
  return line;
}

std::string line_of(const ControlReport& report) {
  return fmt::format("{} {}, gate {}: {}", report.red ? "red " : "MISSED", name_of(report.control),
                     static_cast<int>(report.control.gate), report.words);
}

std::string failures_of(const ContractReport& report) {
  std::string text;
  for (const KernelReport& kernel : report.kernels) {
    if (!kernel.passed()) text += line_of(kernel) + "\n";
  }
  for (const ControlReport& control : report.controls) {
    if (!control.red) text += line_of(control) + "\n";
  }
  for (const LimitReport& limit : report.limits.targets) {
    if (!limit.problems.empty()) text += line_of(limit) + "\n";
  }
  return text;
}

std::string summary_of(const ContractReport& report) {
  const auto kernels = static_cast<std::uint32_t>(report.kernels.size());
  const auto controls = static_cast<std::uint32_t>(report.controls.size());
  return fmt::format(
      "SUMMARY {} {} kernels: {} pass gates 1-4, {} fail, {} known findings; {} controls: {} red "
      "as planted, {} missed; {} limit problems",
      report.target, kernels, kernels - report.failed(), report.failed(), report.known_findings(),
      controls, controls - report.missed(), report.missed(), report.limit_problems());
}

nlohmann::ordered_json to_json(const ContractReport& report) {
  Json kernels = Json::array();
  for (const KernelReport& kernel : report.kernels) {
    Json one = {{"case", kernel.name},
                {"shape", Json::parse(kernel.shape_json)},
                {"key", kernel.key.hex()},
                {"passed", kernel.passed()},
                {"gates", gates_json(kernel)}};
    if (!kernel.error.empty()) one["error"] = kernel.error;
    kernels.push_back(std::move(one));
  }
  Json tried = Json::array();
  for (const ControlReport& control : report.controls) {
    Json one = control_json(control.control);
    one["red"] = control.red;
    one["said"] = control.words;
    tried.push_back(std::move(one));
  }
  return {{"target", report.target},
          {"device", report.device},
          {"driver", report.driver},
          {"passed", report.passed()},
          {"failed", report.failed()},
          {"missed", report.missed()},
          {"limit_problems", report.limit_problems()},
          {"known_findings", report.known_findings()},
          {"summary", summary_of(report)},
          {"kernels", std::move(kernels)},
          {"controls", std::move(tried)},
          {"limits", to_json(report.limits)}};
}

std::string receipt_json(const std::vector<const KernelReport*>& cases) {
  Json each = Json::array();
  bool passed = true;
  std::uint64_t comparisons = 0;
  for (const KernelReport* one : cases) {
    each.push_back({{"case", one->name}, {"passed", one->passed()}, {"gates", gates_json(*one)}});
    passed = passed && one->passed();
    comparisons += comparisons_of(*one);
  }
  const Json receipt = {
      {"passed", passed}, {"comparisons", comparisons}, {"cases", std::move(each)}};
  return receipt.dump();
}

std::string receipt_words(std::string_view json) {
  const Json receipt = Json::parse(json, nullptr, false);
  if (!receipt.is_object() || !receipt.contains("passed") || !receipt.contains("cases") ||
      !receipt.contains("comparisons")) {
    return std::string(json);
  }
  std::string words =
      fmt::format("{}, {} cases, {} comparisons", receipt["passed"] == true ? "passed" : "FAILED",
                  receipt["cases"].size(), receipt["comparisons"].dump());
  for (const Json& one : receipt["cases"]) {
    words += fmt::format("\n  {} {}", one.value("passed", false) ? "pass" : "FAIL",
                         one.value("case", ""));
  }
  return words;
}

}  // namespace broach::contract
