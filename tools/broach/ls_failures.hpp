#pragma once

#include <string>

#include "tools/broach/command.hpp"

namespace broach::tool {

/// Lists the compiles that failed and are not tried again yet: key, target, toolchain, when they
/// expire, and the compiler's whole log. `target` empty: every one.
Result<ExitStatus> list_failures(Session& session, const std::string& target);

}  // namespace broach::tool
