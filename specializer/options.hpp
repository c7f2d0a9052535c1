#pragma once

#include <string>
#include <vector>

#include "specializer/target.hpp"

namespace broach::specializer {

/// The compiler options of a target, in the order they are passed and hashed. None is a path.
///
/// A worker adds only what has no part in the code: names of input and output files.
///
/// Source:  docs/cache_key.md, "Options".
std::vector<std::string> compiler_options(const Target& target);

}  // namespace broach::specializer
