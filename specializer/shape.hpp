#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "broach/result.hpp"
#include "specializer/target.hpp"

namespace broach::specializer {

class Family;

/// More fields than any family has.
inline constexpr std::size_t kMaxFields = 24;

/// What one kernel is specialised for: a value a field of some family, in the family's order.
///
/// A choice is held as its position in the field's list, one with a number as `choice_value` has
/// it.
///
/// Threads: as safe as a number.
/// Owns:    nothing; the family outlives its shapes.
class Shape {
 public:
  /// Every field at its default.
  explicit Shape(const Family& family) noexcept;

  /// The values of the family's fields, all of them.
  template <std::size_t kCount>
  constexpr Shape(const Family& family, const std::array<std::uint64_t, kCount>& values) noexcept
      : family_(&family), count_(kCount), values_{} {
    static_assert(kCount <= kMaxFields);
    std::copy(values.begin(), values.end(), values_.begin());
  }

  const Family& family() const noexcept { return *family_; }
  std::span<const std::uint64_t> values() const noexcept { return {values_.data(), count_}; }
  std::uint64_t operator[](std::size_t field) const noexcept { return values_[field]; }
  void set(std::size_t field, std::uint64_t value) noexcept { values_[field] = value; }

  friend bool operator==(const Shape& a, const Shape& b) noexcept {
    return a.family_ == b.family_ &&
           std::equal(a.values_.data(), a.values_.data() + a.count_, b.values_.data());
  }

 private:
  const Family* family_;
  std::uint32_t count_;
  std::array<std::uint64_t, kMaxFields> values_;
};

/// A hash of every field; equal shapes have equal hashes, in this process only.
inline std::uint64_t hash_of(const Shape& shape) noexcept {
  // The products do not wait for each other; SplitMix64's finalizer spreads their sum.
  std::uint64_t sum = reinterpret_cast<std::uintptr_t>(&shape.family());
  std::uint64_t factor = 0x9e3779b97f4a7c15U;
  for (const std::uint64_t value : shape.values()) {
    sum += (value ^ value >> 32) * factor;
    factor = factor * 5 + 2;  // Stays odd.
  }
  sum = (sum ^ sum >> 30) * 0xbf58476d1ce4e5b9U;
  sum = (sum ^ sum >> 27) * 0x94d049bb133111ebU;
  return sum ^ sum >> 31;
}

/// A shape that its family serves on a target: ranges checked, defaults replaced by what the
/// target uses, and a kernel exists. Only Family::serve makes one, so that whoever holds one need
/// not check again.
class ServedShape {
 public:
  const Shape& shape() const noexcept { return shape_; }
  const Target& target() const noexcept { return target_; }
  const Family& family() const noexcept { return shape_.family(); }

 private:
  friend class Family;
  ServedShape(Shape shape, Target target) noexcept
      : shape_(std::move(shape)), target_(std::move(target)) {}

  Shape shape_;
  Target target_;
};

/// Serves a shape by its family.
///
/// Errors:  kInvalidArgument or kUnsupported with the field, its value, and what would work.
Result<ServedShape> serve(const Shape& shape, const Target& target);

/// One parameter of a shape by name, as text: ("kv_layout", "ring(1536)").
struct ShapeParameter {
  std::string name;
  std::string value;
};

/// Every parameter of a shape, in the order of the family's fields.
std::vector<ShapeParameter> parameters(const Shape& shape);

/// Canonical JSON: keys sorted, no spaces, `"family"` included.
std::string to_json(const Shape& shape);

/// The family and `name=value` for each field, as a command line has them.
std::string to_text(const Shape& shape);

/// Reads `name=value` items; fields that are not named keep their defaults.
///
/// Errors:  kInvalidArgument naming the item and the values that would work.
Result<Shape> parse_shape(const Family& family, std::span<const std::string> items);

/// Reads the canonical JSON, or an object of the same fields in any order, of one family.
///
/// Errors:  kInvalidArgument naming the field, its value and what would work.
Result<Shape> shape_from_json(const Family& family, std::string_view json);

}  // namespace broach::specializer
