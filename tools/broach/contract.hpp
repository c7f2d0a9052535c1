#pragma once

#include "tools/broach/command.hpp"

namespace broach::tool {

/// Adds `broach contract`: the gates, the planted controls and the limits, on one device.
void add_contract(CommandLine& line);

}  // namespace broach::tool
