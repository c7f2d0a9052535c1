#pragma once

#include <nlohmann/json_fwd.hpp>

#include "specializer/json_text.hpp"
#include "specializer/shape.hpp"

namespace broach::specializer {

/// What a shape's JSON holds, for more to be added.
JsonObject json_members(const Shape& shape);

/// Reads an object of a family's fields that is parsed already.
///
/// Errors:  as shape_from_json of text.
Result<Shape> shape_from_json(const Family& family, const nlohmann::json& object);

}  // namespace broach::specializer
