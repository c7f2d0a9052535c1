#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "broach/result.hpp"
#include "broach/types.hpp"
#include "specializer/plan.hpp"

namespace broach::specializer {

/// Reads what each entry needs to launch out of a cubin.
///
/// Spilled bytes come from the list of spilling instructions that toolkit 13 leaves in the ELF;
/// where there is none and local memory is used, from ptxas's report in the log, and `source` says
/// so.
///
/// Errors:  kDamaged when the bytes are no cubin, are another chip's, or lack an entry.
/// Source:  docs/limits.md.
Result<std::vector<LaunchLimits>> read_cubin(std::span<const KernelEntry> entries,
                                             const Target& target,
                                             std::span<const std::byte> binary,
                                             std::string_view compile_log);

}  // namespace broach::specializer
