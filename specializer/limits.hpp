#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "broach/result.hpp"
#include "broach/types.hpp"
#include "specializer/plan.hpp"

namespace broach::specializer {

/// Reads what each function of a compiled binary needs to launch, on any machine.
///
/// Shapes:  one row a plan entry, in the plan's order, under the name in the binary: `symbols` has
///          it of each, as CompileOutput does; without any they are the entries' own.
/// Errors:  kDamaged when the binary does not parse or lacks an entry.
/// Source:  cubin ELF sections, the AMD code object's metadata note, or the host object's record.
Result<std::vector<LaunchLimits>> read_limits(const Plan& plan, std::span<const std::byte> binary,
                                              std::string_view compile_log,
                                              std::span<const std::string> symbols = {});

}  // namespace broach::specializer
