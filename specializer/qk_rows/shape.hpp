#pragma once

#include <array>
#include <string_view>
#include <tuple>

#include "broach/qk_rows.hpp"
#include "specializer/common_choices.hpp"
#include "specializer/qk_rows/family.hpp"
#include "specializer/typed_shape.hpp"

namespace broach::specializer {
namespace qk_rows {

inline constexpr Choice kRopeStyleChoices[] = {{"half"}, {"interleaved"}};
inline constexpr Choice kNormChoices[] = {{"none"}, {"rms"}, {"l2"}};
inline constexpr Choice kOrderChoices[] = {{"rope_norm"}, {"norm_rope"}};

/// The parameters of a shape. What the generic kernel takes at run time is no part of its plan.
inline constexpr std::array kFields{
    Field{.name = "head_dim"},
    Field{.name = "gqa_ratio", .in_generic = InGeneric::kRunTime},
    Field{.name = "rope_dim", .in_generic = InGeneric::kRunTime},
    Field{.name = "rope_style", .kind = FieldKind::kChoice, .choices = kRopeStyleChoices},
    Field{.name = "norm", .kind = FieldKind::kChoice, .choices = kNormChoices},
    Field{.name = "order", .kind = FieldKind::kChoice, .choices = kOrderChoices},
    Field{.name = "q_scale", .kind = FieldKind::kChoice, .choices = kSwitchChoices},
    Field{.name = "kv_layout",
          .kind = FieldKind::kChoiceWithNumber,
          .choices = kKvLayoutChoices,
          .in_generic = InGeneric::kRunTime},
    Field{.name = "dtype", .kind = FieldKind::kChoice, .choices = kDtypeChoices},
    Field{.name = "checked", .kind = FieldKind::kChoice, .choices = kSwitchChoices},
};

}  // namespace qk_rows

template <>
struct TypedShape<QkRowsShape> {
  static const Family& family() noexcept { return qk_rows::family(); }
  static constexpr std::tuple kMembers{&QkRowsShape::head_dim, &QkRowsShape::gqa_ratio,
                                       &QkRowsShape::rope_dim, &QkRowsShape::rope_style,
                                       &QkRowsShape::norm,     &QkRowsShape::order,
                                       &QkRowsShape::q_scale,  &QkRowsShape::kv_layout,
                                       &QkRowsShape::dtype,    &QkRowsShape::checked};
  static_assert(std::tuple_size_v<decltype(kMembers)> == qk_rows::kFields.size());
};

constexpr std::string_view name_of(RopeStyle style) noexcept {
  return qk_rows::kRopeStyleChoices[static_cast<std::size_t>(style)].name;
}
constexpr std::string_view name_of(HeadNorm norm) noexcept {
  return qk_rows::kNormChoices[static_cast<std::size_t>(norm)].name;
}
constexpr std::string_view name_of(QkOrder order) noexcept {
  return qk_rows::kOrderChoices[static_cast<std::size_t>(order)].name;
}
static_assert(name_of(RopeStyle::kInterleaved) == "interleaved");
static_assert(name_of(HeadNorm::kL2) == "l2");
static_assert(name_of(QkOrder::kNormRope) == "norm_rope");

}  // namespace broach::specializer
