#include "specializer/target.hpp"

#include <fmt/core.h>

#include <vector>

#include "specializer/chips.hpp"
#include "specializer/host_model.hpp"
#include "specializer/spelling.hpp"

namespace broach::specializer {
namespace {

constexpr std::string_view kStepK8 = "step=k8";

const std::vector<std::string_view>& names() {
  static const std::vector<std::string_view> all = [] {
    std::vector<std::string_view> found;
    for (const Chip& chip : chips()) found.push_back(chip.name);
    return found;
  }();
  return all;
}

Error unknown(std::string_view name) {
  std::string way_out;
  // "compute_90a", "90a" and "SM_90a" are what people type.
  const std::size_t digits = name.find_first_of("0123456789");
  const std::string chip =
      digits == std::string_view::npos ? "" : fmt::format("sm_{}", name.substr(digits));
  way_out = find_chip(chip) != nullptr ? fmt::format("; {} works", chip)
                                       : did_you_mean(name.substr(0, name.find(':')), names());
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("target \"{}\" is not known{} (`broach help targets` lists all {} and "
                           "host)",
                           name, way_out, names().size()),
               ""};
}

std::string_view features_of(const Chip& chip) {
  if ((chip.features & kSramecc) != 0) return "each of sramecc and xnack once, + or -";
  if ((chip.features & kXnack) != 0) return "xnack does, once, + or -";
  if ((chip.features & kStep) != 0) return "step=k8 does, once; without it the step is sm_90's";
  return "it has none";
}

struct Features {
  std::string sramecc, xnack, step;  ///< Each with its colon, or empty.
};

// Where a feature's word goes, or null where the chip has no such feature.
std::string* place_of(std::string_view word, const Chip& chip, Features& features) {
  if (word == kStepK8) return (chip.features & kStep) != 0 ? &features.step : nullptr;
  if (!word.ends_with('+') && !word.ends_with('-')) return nullptr;
  word.remove_suffix(1);
  if (word == "sramecc" && (chip.features & kSramecc) != 0) return &features.sramecc;
  if (word == "xnack" && (chip.features & kXnack) != 0) return &features.xnack;
  return nullptr;
}

// Reads ":xnack-:sramecc+", in any order.
Result<Features> read_features(const Chip& chip, std::string_view words, std::string_view whole) {
  Features features;
  while (!words.empty()) {
    words.remove_prefix(1);  // The colon.
    const std::string_view word = words.substr(0, words.find(':'));
    words.remove_prefix(word.size());
    std::string* const place = place_of(word, chip, features);
    if (place == nullptr || !place->empty()) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("target \"{}\": feature \"{}\" does not apply to {}: {}", whole,
                               word, chip.name, features_of(chip)),
                   ""};
    }
    *place = fmt::format(":{}", word);
  }
  return features;
}

}  // namespace

Result<Target> parse_target(std::string_view name) {
  // "host" and "host:step=k8" are this machine's.
  const bool native = name == "host" || name.starts_with("host:");
  const std::string whole =
      native ? fmt::format("{}{}", native_host_target(), name.substr(4)) : std::string(name);
  const std::string_view chip_name = std::string_view(whole).substr(0, whole.find(':'));
  const Chip* const chip = find_chip(chip_name);
  if (chip == nullptr) return unknown(name);
  const auto features =
      read_features(*chip, std::string_view(whole).substr(chip_name.size()), name);
  if (!features) return features.error();
  // In the order that AMD's compilers print.
  const std::string of_amd = features->sramecc + features->xnack;

  Target target;
  target.name = std::string(chip->name) + of_amd + features->step;
  target.vendor = chip->vendor;
  target.arch = std::string(chip->arch) + of_amd;
  target.warp_width = chip->warp_width;
  target.mma_step = features->step.empty() ? chip->mma_step : MmaStep::kTwoK8;
  target.max_shared_bytes = chip->max_shared_bytes;
  target.registers_per_block = chip->registers_per_block;
  target.least_driver = chip->least_driver;
  return target;
}

std::span<const std::string_view> known_targets() { return names(); }

std::string_view native_host_target() {
#if defined(__aarch64__)
  return "host-aarch64";
#else
  return "host-x86-64-v3";
#endif
}

std::string_view host_target_modelling(const Target& target) {
  return target.mma_step == MmaStep::kTwoK8 ? "host:step=k8" : "host";
}

}  // namespace broach::specializer
