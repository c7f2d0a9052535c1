#pragma once

#include <optional>
#include <string>
#include <vector>

#include "specializer/plan.hpp"
#include "tools/contract/window_rows/cases.hpp"

namespace broach::contract::window_rows {

/// Another kernel that has to give the same bits on the same numbers.
struct ShapeVariant {
  std::string name;
  WindowRowsShape shape;
  specializer::Variant variant;
};

/// A ring declared longer, every other layout, and the generic kernel of the case's own shape.
std::vector<ShapeVariant> variants_of(const CaseSpec& tried);

/// The same rows by the other form, where the arithmetic promises the same bits in both: a tile64
/// prefill's decode.
std::optional<WindowRowsShape> other_form(const WindowRowsShape& shape);

}  // namespace broach::contract::window_rows
