#pragma once

#include <string>

#include "cache/cache.hpp"
#include "tools/broach/output.hpp"

namespace broach::tool {

/// A remote as it was just asked: layer, whether it answers and how fast, breaker, use.
Json to_json(const cache::RemoteStatus& status);

/// The same in two or three lines.
std::string remote_text(const cache::RemoteStatus& status);

}  // namespace broach::tool
