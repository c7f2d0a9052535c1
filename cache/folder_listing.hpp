#pragma once

#include <string>
#include <vector>

#include "broach/result.hpp"

namespace broach::cache {

/// The names in an open folder, without "." and "..", in no order.
Result<std::vector<std::string>> names_in(int folder, const std::string& path);

}  // namespace broach::cache
