#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "specializer/plan.hpp"
#include "specializer/shape.hpp"

namespace broach::specializer {

/// Specialised for a family's public struct, with `static const Family& family()` and a constexpr
/// tuple `kMembers` of pointers to members, in the order of the family's fields.
template <class Typed>
struct TypedShape;

template <class Typed>
concept HasTypedShape = requires {
  TypedShape<Typed>::kMembers;
};

/// A member's value as a Shape holds it: a number, an enumerator (in the order of the choices), or
/// a struct of `kind` and `length`.
template <class Value>
constexpr std::uint64_t packed(const Value& value) noexcept {
  if constexpr (std::is_enum_v<Value>) {
    return static_cast<std::uint64_t>(value);
  } else if constexpr (std::is_class_v<Value>) {
    return choice_value(static_cast<std::uint32_t>(value.kind), value.length);
  } else {
    return value;
  }
}

template <class Value>
constexpr Value unpacked(std::uint64_t value) noexcept {
  if constexpr (std::is_class_v<Value>) {
    return {static_cast<decltype(Value::kind)>(choice_of(value)), number_of(value)};
  } else {
    return static_cast<Value>(value);
  }
}

template <HasTypedShape Typed>
Shape shape_of(const Typed& typed) noexcept {
  return std::apply(
      [&](auto... member) {
        return Shape(TypedShape<Typed>::family(),
                     std::array<std::uint64_t, sizeof...(member)>{packed(typed.*member)...});
      },
      TypedShape<Typed>::kMembers);
}

/// The struct of a shape of its family.
template <HasTypedShape Typed>
Typed typed_of(const Shape& shape) noexcept {
  Typed typed;
  std::apply(
      [&](auto... member) {
        std::size_t field = 0;
        ((typed.*member = unpacked<std::remove_cvref_t<decltype(typed.*member)>>(shape[field++])),
         ...);
      },
      TypedShape<Typed>::kMembers);
  return typed;
}

template <HasTypedShape Typed>
Result<ServedShape> serve(const Typed& typed, const Target& target) {
  return serve(shape_of(typed), target);
}

/// The plan of a shape that is served for nothing else.
template <HasTypedShape Typed>
Result<Plan> plan(const Typed& typed, const Target& target, const Variant& variant = {}) {
  auto served = serve(typed, target);
  if (!served) return served.error();
  return plan(*served, variant);
}

template <HasTypedShape Typed>
std::vector<ShapeParameter> parameters(const Typed& typed) {
  return parameters(shape_of(typed));
}

template <HasTypedShape Typed>
std::string to_json(const Typed& typed) {
  return to_json(shape_of(typed));
}

template <HasTypedShape Typed>
std::string to_text(const Typed& typed) {
  return to_text(shape_of(typed));
}

}  // namespace broach::specializer
