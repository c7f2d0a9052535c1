#pragma once

#include <string_view>

#include "broach/result.hpp"
#include "specializer/version.hpp"

namespace broach::runtime {

/// Says whether a driver loads binaries that need one of version `least` or later: it does where
/// either side states no version. `words` are the driver's name for people.
///
/// Errors:  kDriver naming both versions.
Result<void> check_least_driver(specializer::Version driver, std::string_view words,
                                specializer::Version least);

}  // namespace broach::runtime
