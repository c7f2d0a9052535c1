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
      : Shape(family, values, std::make_index_sequence<kMaxFields>()) {
    static_assert(kCount <= kMaxFields);
  }

  const Family& family() const noexcept { return *family_; }
  std::span<const std::uint64_t> values() const noexcept { return {values_.data(), count_}; }
  std::uint64_t operator[](std::size_t field) const noexcept { return values_[field]; }
  void set(std::size_t field, std::uint64_t value) noexcept { values_[field] = value; }

  friend bool operator==(const Shape& a, const Shape& b) noexcept {
    if (a.family_ != b.family_) return false;
    // A dozen values: their differences are sooner known than a call of memcmp returns.
    std::uint64_t differences = 0;
    for (std::size_t i = 0; i < a.count_; ++i) differences |= a.values_[i] ^ b.values_[i];
    return differences == 0;
  }

 private:
  // Element by element: a look-up makes a Shape, and filling an array with zeros first takes longer
  // than the rest of it.
  template <std::size_t kCount, std::size_t... kIndex>
  constexpr Shape(const Family& family, const std::array<std::uint64_t, kCount>& values,
                  std::index_sequence<kIndex...>) noexcept
      : family_(&family),
        count_(kCount),
        values_{(kIndex < kCount ? values[kIndex % kCount] : 0)...} {}

  const Family* family_;
  std::uint32_t count_;
  std::array<std::uint64_t, kMaxFields> values_;
};

/// Odd 64-bit constants without a pattern, one a field: multiples of the golden ratio's.
inline constexpr std::array<std::uint64_t, kMaxFields> kFieldKeys = [] {
  std::array<std::uint64_t, kMaxFields> keys{};
  std::uint64_t key = 0;
  for (std::uint64_t& one : keys) {
    key += 0x9e3779b97f4a7c15U;
    one = (key ^ key >> 29) * 0xbf58476d1ce4e5b9U | 1;
  }
  return keys;
}();

/// A hash of every field; equal shapes have equal hashes, in this process only.
inline std::uint64_t hash_of(const Shape& shape) noexcept {
  __extension__ using Product = unsigned __int128;
  static_assert(kMaxFields % 2 == 0);
  // A product mixes two fields into all of its bits, and no product waits for another. Behind an
  // odd number of fields lies a 0.
  const std::uint64_t* const values = shape.values().data();
  const std::size_t count = shape.values().size();
  std::uint64_t sum = reinterpret_cast<std::uintptr_t>(&shape.family());
  for (std::size_t i = 0; i < count; i += 2) {
    const Product product =
        static_cast<Product>(values[i] ^ kFieldKeys[i]) * (values[i + 1] ^ kFieldKeys[i + 1]);
    sum += static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }
  sum = (sum ^ sum >> 32) * 0xbf58476d1ce4e5b9U;
  return sum ^ sum >> 29;
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
