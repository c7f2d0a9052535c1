#pragma once

#include <string_view>

#include "broach/types.hpp"
#include "specializer/field.hpp"

namespace broach::specializer {

/// The choices of types that several families have (broach/types.hpp), in the enumerators' order.
inline constexpr Choice kSwitchChoices[] = {{"off"}, {"on"}};
inline constexpr Choice kDtypeChoices[] = {{"bf16"}, {"f16"}};
inline constexpr Choice kKvLayoutChoices[] = {
    {"linear"}, {"ring", TakesNumber::kYes}, {"paged", TakesNumber::kYes}};

constexpr std::string_view name_of(Switch value) noexcept {
  return kSwitchChoices[static_cast<std::size_t>(value)].name;
}
constexpr std::string_view name_of(Dtype value) noexcept {
  return kDtypeChoices[static_cast<std::size_t>(value)].name;
}
constexpr std::string_view name_of(KvLayoutKind value) noexcept {
  return kKvLayoutChoices[static_cast<std::size_t>(value)].name;
}

constexpr bool on(Switch value) noexcept { return value == Switch::kOn; }

/// The kernel sources' enumerator of a layout.
constexpr std::string_view layout_enumerator(KvLayoutKind kind) noexcept {
  switch (kind) {
    case KvLayoutKind::kLinear:
      return "kLinear";
    case KvLayoutKind::kRing:
      return "kRing";
    case KvLayoutKind::kPaged:
      return "kPaged";
  }
  return "kLinear";
}

static_assert(name_of(Switch::kOn) == "on");
static_assert(name_of(Dtype::kF16) == "f16");
static_assert(name_of(KvLayoutKind::kRing) == "ring");
static_assert(name_of(KvLayoutKind::kPaged) == "paged");

}  // namespace broach::specializer
