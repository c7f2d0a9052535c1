#pragma once

#include <array>
#include <string_view>
#include <tuple>

#include "broach/window_rows.hpp"
#include "specializer/common_choices.hpp"
#include "specializer/typed_shape.hpp"
#include "specializer/window_rows/family.hpp"

namespace broach::specializer {
namespace window_rows {

inline constexpr Choice kFormChoices[] = {{"decode"}, {"prefill"}};
inline constexpr Alias kFormAliases[] = {{"prompt", "prefill"}};
inline constexpr Choice kArithChoices[] = {
    {"default"}, {"chunk256"}, {"tile64"}, {"mma32"}, {"tile64_ex2"}};

/// The parameters of a shape. What the generic kernel takes at run time is no part of its plan: one
/// binary serves every value.
inline constexpr std::array kFields{
    Field{.name = "head_dim"},
    Field{.name = "gqa_ratio", .in_generic = InGeneric::kRunTime},
    Field{.name = "window", .in_generic = InGeneric::kRunTime},
    Field{.name = "kv_layout",
          .kind = FieldKind::kChoiceWithNumber,
          .choices = kKvLayoutChoices,
          .in_generic = InGeneric::kRunTime},
    Field{.name = "dtype", .kind = FieldKind::kChoice, .choices = kDtypeChoices},
    Field{.name = "p32", .kind = FieldKind::kChoice, .choices = kSwitchChoices},
    Field{.name = "softcap", .kind = FieldKind::kChoice, .choices = kSwitchChoices},
    Field{.name = "sinks", .kind = FieldKind::kChoice, .choices = kSwitchChoices},
    Field{.name = "form",
          .kind = FieldKind::kChoice,
          .choices = kFormChoices,
          .aliases = kFormAliases},
    Field{.name = "arith", .kind = FieldKind::kChoice, .choices = kArithChoices},
    Field{.name = "checked", .kind = FieldKind::kChoice, .choices = kSwitchChoices},
};

}  // namespace window_rows

template <>
struct TypedShape<WindowRowsShape> {
  static const Family& family() noexcept { return window_rows::family(); }
  static constexpr std::tuple kMembers{
      &WindowRowsShape::head_dim,  &WindowRowsShape::gqa_ratio, &WindowRowsShape::window,
      &WindowRowsShape::kv_layout, &WindowRowsShape::dtype,     &WindowRowsShape::p32,
      &WindowRowsShape::softcap,   &WindowRowsShape::sinks,     &WindowRowsShape::form,
      &WindowRowsShape::arith,     &WindowRowsShape::checked};
  static_assert(std::tuple_size_v<decltype(kMembers)> == window_rows::kFields.size());
};

constexpr std::string_view name_of(Form form) noexcept {
  return window_rows::kFormChoices[static_cast<std::size_t>(form)].name;
}
constexpr std::string_view name_of(Arith arith) noexcept {
  return window_rows::kArithChoices[static_cast<std::size_t>(arith)].name;
}
static_assert(name_of(Form::kPrefill) == "prefill");
static_assert(name_of(Arith::kChunk256) == "chunk256");
static_assert(name_of(Arith::kTile64) == "tile64");
static_assert(name_of(Arith::kTile64Ex2) == "tile64_ex2");
static_assert(name_of(Arith::kMma32) == "mma32");

}  // namespace broach::specializer
