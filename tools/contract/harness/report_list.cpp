#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "tools/contract/harness/report.hpp"

namespace broach::contract {
namespace {

using Json = nlohmann::ordered_json;

template <class Made>
auto from_each(const ContractRequest& request, Made (ContractFamily::*made)() const) {
  Made all;
  for (const ContractFamily* const family : request.families) {
    for (auto& one : (family->*made)()) all.push_back(std::move(one));
  }
  return all;
}

}  // namespace

std::string list_text(const ContractRequest& request) {
  std::string text = "kernels and the cases that try them\n";
  for (const auto& one : request.cases) {
    text += fmt::format("  {}\n      {}\n", one->name(), one->shape_json());
  }
  text += "\nplanted controls, and the gate that has to see each\n";
  for (const Control& control : request.controls) {
    text += fmt::format("  {}, gate {}: {}\n      {}\n", name_of(control),
                        static_cast<int>(control.gate), control.words, control.why);
  }
  text += "\nbounds of the range checkers\n";
  for (const ListedBound& bound : from_each(request, &ContractFamily::bounds)) {
    std::string values;
    for (const auto& [name, value] : bound.values) {
      values += fmt::format("{}{} {:.3g}", values.empty() ? "" : ", ", name, value);
    }
    text += fmt::format("  {}: {}\n      {}\n", bound.name, values, bound.why);
  }
  text +=
      "\ngate 5 compiles so many kernels for each target, fewer where one does not serve all\n ";
  for (const LimitScope& scope : request.limits.scopes) {
    text += fmt::format(" {} ({})", scope.target, scope.kernels.size());
  }
  text += "\n\nknown findings of gate 5\n";
  for (const Finding& finding : from_each(request, &ContractFamily::findings)) {
    text += fmt::format("  {} on {}*: {}\n      {}\n", finding.function, finding.targets,
                        finding.what, finding.why);
  }
  return text;
}

nlohmann::ordered_json list_json(const ContractRequest& request) {
  Json cases = Json::array();
  for (const auto& one : request.cases) {
    cases.push_back({{"case", one->name()},
                     {"shape", Json::parse(one->shape_json())},
                     {"digest", one->pinned_digest()}});
  }
  Json tried = Json::array();
  for (const Control& control : request.controls) {
    tried.push_back({{"name", control.name},
                     {"kind", control.kind},
                     {"what", control.words},
                     {"gate", static_cast<int>(control.gate)},
                     {"why", control.why}});
  }
  Json stated = Json::array();
  for (const ListedBound& bound : from_each(request, &ContractFamily::bounds)) {
    Json values = Json::object();
    for (const auto& [name, value] : bound.values) values[std::string(name)] = value;
    stated.push_back({{"name", bound.name}, {"values", std::move(values)}, {"why", bound.why}});
  }
  Json known = Json::array();
  for (const Finding& finding : from_each(request, &ContractFamily::findings)) {
    known.push_back({{"function", finding.function},
                     {"targets", finding.targets},
                     {"what", finding.what},
                     {"why", finding.why}});
  }
  Json targets = Json::array();
  for (const LimitScope& scope : request.limits.scopes) {
    targets.push_back({{"target", scope.target}, {"kernels", scope.kernels.size()}});
  }
  return {{"kernels", std::move(cases)},
          {"controls", std::move(tried)},
          {"bounds", std::move(stated)},
          {"limit_targets", std::move(targets)},
          {"known_findings", std::move(known)}};
}

}  // namespace broach::contract
