#pragma once

#include <array>
#include <string_view>
#include <tuple>

#include "broach/sparse_rows.hpp"
#include "specializer/common_choices.hpp"
#include "specializer/sparse_rows/family.hpp"
#include "specializer/typed_shape.hpp"

namespace broach::specializer {
namespace sparse_rows {

inline constexpr Choice kTileChoices[] = {{"scalar"}, {"mma"}};
inline constexpr Choice kQueryDtypeChoices[] = {{"cache"}, {"f32"}};

/// The parameters of a shape. What the generic kernel takes at run time is no part of its plan.
inline constexpr std::array kFields{
    Field{.name = "head_dim"},
    Field{.name = "gqa_ratio", .in_generic = InGeneric::kRunTime},
    Field{.name = "compress_ratio", .in_generic = InGeneric::kRunTime},
    Field{.name = "tile", .kind = FieldKind::kChoice, .choices = kTileChoices},
    Field{.name = "part_count", .default_value = 16, .in_generic = InGeneric::kRunTime},
    Field{.name = "p_parts", .default_value = 3},
    Field{.name = "kv_layout",
          .kind = FieldKind::kChoiceWithNumber,
          .choices = kKvLayoutChoices,
          .in_generic = InGeneric::kRunTime},
    Field{.name = "dtype", .kind = FieldKind::kChoice, .choices = kDtypeChoices},
    Field{.name = "q_dtype", .kind = FieldKind::kChoice, .choices = kQueryDtypeChoices},
    Field{.name = "checked", .kind = FieldKind::kChoice, .choices = kSwitchChoices},
};

}  // namespace sparse_rows

template <>
struct TypedShape<SparseRowsShape> {
  static const Family& family() noexcept { return sparse_rows::family(); }
  static constexpr std::tuple kMembers{
      &SparseRowsShape::head_dim,  &SparseRowsShape::gqa_ratio,  &SparseRowsShape::compress_ratio,
      &SparseRowsShape::tile,      &SparseRowsShape::part_count, &SparseRowsShape::p_parts,
      &SparseRowsShape::kv_layout, &SparseRowsShape::dtype,      &SparseRowsShape::q_dtype,
      &SparseRowsShape::checked};
  static_assert(std::tuple_size_v<decltype(kMembers)> == sparse_rows::kFields.size());
};

constexpr std::string_view name_of(SparseTile tile) noexcept {
  return sparse_rows::kTileChoices[static_cast<std::size_t>(tile)].name;
}
constexpr std::string_view name_of(QueryDtype dtype) noexcept {
  return sparse_rows::kQueryDtypeChoices[static_cast<std::size_t>(dtype)].name;
}
static_assert(name_of(SparseTile::kMma) == "mma");
static_assert(name_of(QueryDtype::kF32) == "f32");

}  // namespace broach::specializer
