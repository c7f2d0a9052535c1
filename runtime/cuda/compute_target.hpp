#pragma once

#include <span>
#include <string>
#include <string_view>

#include "broach/result.hpp"

namespace broach::runtime::cuda {

/// The name of the target that a chip of compute capability major.minor is compiled for: its own,
/// with the chip's own instructions where there is such a target ("sm_90a"), else the nearest
/// earlier one of the same major version, whose binaries it runs.
///
/// Errors:  kUnsupported naming the capability and the known targets.
Result<std::string> compute_target(int major, int minor, std::span<const std::string_view> known);

}  // namespace broach::runtime::cuda
