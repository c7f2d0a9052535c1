#pragma once

#include <string>
#include <vector>

#include "broach/result.hpp"
#include "specializer/family.hpp"
#include "specializer/family_set.hpp"
#include "specializer/shape.hpp"

namespace broach::tool {

/// A shape as a command line has it: a family, and `name=value` items.
struct ShapeArgument {
  const specializer::Family* family = nullptr;
  std::vector<std::string> items;
};

/// Splits `FAMILY head_dim=256 …`, given as several arguments or as one quoted string. The family
/// comes first.
///
/// Errors:  kInvalidArgument when there is nothing or the family is not known.
Result<ShapeArgument> split_shape(const std::vector<std::string>& arguments,
                                  const specializer::FamilySet& families = {});

/// Reads the shape of such arguments.
///
/// Errors:  as split_shape; kInvalidArgument naming the item and what would work.
Result<specializer::Shape> parse_shape(const std::vector<std::string>& arguments,
                                       const specializer::FamilySet& families = {});

/// How a shape is written, for help texts: every family with its fields and their values.
std::string shape_help();

}  // namespace broach::tool
