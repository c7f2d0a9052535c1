#pragma once

#include <string_view>

#include "broach/result.hpp"

namespace broach::runtime {

/// Says whether a driver named as Device::driver() does serves binaries that need `least_driver`.
/// Either side that states no CUDA version passes.
///
/// Errors:  kDriver naming both versions.
Result<void> check_least_driver(std::string_view driver, std::string_view least_driver);

}  // namespace broach::runtime
