#include "specializer/shape.hpp"

#include "specializer/family.hpp"

namespace broach::specializer {

Shape::Shape(const Family& family) noexcept
    : family_(&family), count_(static_cast<std::uint32_t>(family.fields().size())), values_{} {
  for (std::size_t i = 0; i < count_; ++i) values_[i] = family.fields()[i].default_value;
}

Result<ServedShape> serve(const Shape& shape, const Target& target) {
  return shape.family().serve(shape, target);
}

}  // namespace broach::specializer
