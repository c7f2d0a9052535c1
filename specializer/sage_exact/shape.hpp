#pragma once

#include <array>
#include <string_view>
#include <tuple>

#include "broach/sage_exact.hpp"
#include "specializer/sage_exact/family.hpp"
#include "specializer/typed_shape.hpp"

namespace broach::specializer {
namespace sage_exact {

inline constexpr Choice kBoundaryChoices[] = {
    {"prep"}, {"k_mean"}, {"qk_int8"}, {"v_fp8"}, {"attention"}};
inline constexpr Choice kScheduleChoices[] = {{"default"}, {"plain"}, {"warpgroup"}};

/// The parameters of a shape. A generic kernel of attention is the plain schedule's.
inline constexpr std::array kFields{
    Field{.name = "boundary",
          .kind = FieldKind::kChoice,
          .choices = kBoundaryChoices,
          .default_value = static_cast<std::uint64_t>(SageBoundary::kAttention)},
    Field{.name = "schedule",
          .kind = FieldKind::kChoice,
          .choices = kScheduleChoices,
          .in_generic = InGeneric::kRunTime},
    Field{.name = "multiprocessors", .default_value = 132},
    Field{.name = "threads_per_multiprocessor", .default_value = 2048},
};

}  // namespace sage_exact

template <>
struct TypedShape<SageExactShape> {
  static const Family& family() noexcept { return sage_exact::family(); }
  static constexpr std::tuple kMembers{&SageExactShape::boundary, &SageExactShape::schedule,
                                       &SageExactShape::multiprocessors,
                                       &SageExactShape::threads_per_multiprocessor};
  static_assert(std::tuple_size_v<decltype(kMembers)> == sage_exact::kFields.size());
};

constexpr std::string_view name_of(SageBoundary boundary) noexcept {
  return sage_exact::kBoundaryChoices[static_cast<std::size_t>(boundary)].name;
}
constexpr std::string_view name_of(SageSchedule schedule) noexcept {
  return sage_exact::kScheduleChoices[static_cast<std::size_t>(schedule)].name;
}
static_assert(name_of(SageBoundary::kAttention) == "attention");
static_assert(name_of(SageSchedule::kWarpgroup) == "warpgroup");

}  // namespace broach::specializer
