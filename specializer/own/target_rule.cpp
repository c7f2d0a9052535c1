#include <fmt/core.h>

#include <charconv>

#include "specializer/chips.hpp"
#include "specializer/own/description.hpp"

namespace broach::specializer::own {
namespace {

/// "gfx90a" of "gfx90a:xnack-"; "host" of every host.
std::string_view chip_of(const Target& target) {
  if (target.vendor == Vendor::kHost) return "host";
  const std::string_view name = target.name;
  return name.substr(0, name.find(':'));
}

/// A chip's place among its vendor's: 90 of sm_90a, 0x90a of gfx90a; 0 where the name has none.
std::uint32_t generation_of(std::string_view chip) {
  const bool is_amd = chip.starts_with("gfx");
  if (!is_amd && !chip.starts_with("sm_")) return 0;
  chip.remove_prefix(3);
  std::uint32_t number = 0;
  const char* const end = chip.data() + chip.size();
  const auto read = std::from_chars(chip.data(), end, number, is_amd ? 16 : 10);
  if (read.ec != std::errc()) return 0;
  if (is_amd && read.ptr != end) return 0;  // gfx9-generic stands for several.
  return number;
}

}  // namespace

bool TargetRule::takes(const Target& target) const noexcept {
  if (target.vendor != vendor) return false;
  const std::string_view chip = chip_of(target);
  if (!and_later) return chip == text;
  return generation_of(chip) >= generation;
}

Result<TargetRule> TargetRule::read(std::string_view text) {
  TargetRule rule;
  rule.text = text;
  if (text == "host") return rule;
  const std::string_view chip = text.ends_with('+') ? text.substr(0, text.size() - 1) : text;
  const Chip* const known = find_chip(chip);
  if (known == nullptr || known->vendor == Vendor::kHost) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("\"{}\" is no target; a chip such "
                             "as sm_90a, one with a plus such as sm_80+ or gfx90a+, and host work",
                             text),
                 ""};
  }
  rule.vendor = known->vendor;
  rule.and_later = chip.size() != text.size();
  rule.generation = generation_of(chip);
  if (rule.and_later && rule.generation == 0) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("\"{}\": {} stands for several chips, and none are later than it; "
                             "without the plus it works",
                             text, chip),
                 ""};
  }
  return rule;
}

}  // namespace broach::specializer::own
