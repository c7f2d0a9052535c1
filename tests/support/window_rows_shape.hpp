#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "specializer/window_rows/shape.hpp"

namespace broach::test {

/// A shape of window_rows from `name=value` items, with or without the family before them.
inline Result<WindowRowsShape> parse_window_rows(std::vector<std::string> items) {
  const specializer::Family& family = specializer::window_rows::family();
  if (!items.empty() && items.front() == family.name()) items.erase(items.begin());
  auto shape = specializer::parse_shape(family, items);
  if (!shape) return shape.error();
  return specializer::typed_of<WindowRowsShape>(*shape);
}

inline Result<WindowRowsShape> window_rows_from_json(std::string_view json) {
  auto shape = specializer::shape_from_json(specializer::window_rows::family(), json);
  if (!shape) return shape.error();
  return specializer::typed_of<WindowRowsShape>(*shape);
}

/// A shape with every default replaced by what the target uses; the shape itself where it is not
/// served there.
inline WindowRowsShape resolved(const WindowRowsShape& shape, const specializer::Target& target) {
  const auto served = specializer::serve(shape, target);
  return served ? specializer::typed_of<WindowRowsShape>(served->shape()) : shape;
}

}  // namespace broach::test
