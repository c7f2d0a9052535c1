#pragma once

#include <nlohmann/json_fwd.hpp>

#include "specializer/shape.hpp"

namespace broach::specializer {

/// Reads an object of a family's fields that is parsed already.
///
/// Errors:  as shape_from_json of text.
Result<Shape> shape_from_json(const Family& family, const nlohmann::json& object);

}  // namespace broach::specializer
