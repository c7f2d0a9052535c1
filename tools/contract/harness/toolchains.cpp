#include "tools/contract/harness/toolchains.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "specializer/chips.hpp"

namespace broach::contract {
namespace {

using specializer::Target;
using specializer::Vendor;

bool holds(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// "sm_100" of "sm_100a" and of "sm_100f"; a name without such a letter as it is.
std::string_view chip_of(std::string_view target) {
  if (target.ends_with('a') || target.ends_with('f')) target.remove_suffix(1);
  return target;
}

std::string_view without_features(std::string_view target) {
  return target.substr(0, target.find(':'));
}

// Any target that the vendor's compiler serves.
Target example_of(Vendor vendor) {
  for (const std::string_view name : specializer::known_targets()) {
    auto target = specializer::parse_target(name);
    if (target && target->vendor == vendor) return *std::move(target);
  }
  return {};
}

bool is_target(std::string_view stated) {
  const auto known = specializer::known_targets();
  return std::find(known.begin(), known.end(), stated) != known.end();
}

}  // namespace

std::string_view name_of(Vendor vendor) {
  switch (vendor) {
    case Vendor::kNvidia:
      return "NVIDIA";
    case Vendor::kAmd:
      return "AMD";
    case Vendor::kHost:
      break;
  }
  return "host";
}

States CompilerReport::states(const Target& target) const {
  if (stated.empty() || vendor == Vendor::kHost) return States::kUnknown;
  const std::string_view name = without_features(target.name);
  if (holds(stated, name)) return States::kYes;
  const bool of_a_chip = vendor == Vendor::kNvidia && holds(stated, chip_of(name));
  return of_a_chip ? States::kUnknown : States::kNo;
}

CompilerReport examine(const Toolchain& toolchain, Vendor vendor) {
  CompilerReport report;
  report.toolchain = toolchain.name;
  report.vendor = vendor;
  specializer::CompilerStatus status = toolchain.forge->compilers().status(example_of(vendor));
  if (!status.found) {
    report.missing = std::move(status.why);
    return report;
  }
  report.words = std::move(status.found->words);
  report.stated = std::move(status.targets);
  if (vendor == Vendor::kHost) return report;
  std::map<std::string_view, std::string> by_reason;
  for (const std::string& stated : report.stated) {
    if (is_target(stated)) continue;
    std::string& names = by_reason[specializer::why_no_target(stated)];
    names += (names.empty() ? "" : " ") + stated;
  }
  for (const auto& [why, names] : by_reason) {
    report.no_target.push_back(
        fmt::format("{}: {}", names, why.empty() ? "broach does not know them" : why));
  }
  for (const std::string_view name : specializer::known_targets()) {
    auto target = specializer::parse_target(name);
    if (target && target->vendor == vendor && report.states(*target) == States::kNo) {
      report.not_stated.emplace_back(name);
    }
  }
  return report;
}

}  // namespace broach::contract
