#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "broach/result.hpp"
#include "broach/types.hpp"
#include "specializer/plan.hpp"

namespace broach::specializer {

/// The code object of a target: the binary itself, or the target's part of an offload bundle.
///
/// Errors:  kDamaged when a bundle's table does not lie inside it, is compressed, or has no part
///          for the target.
Result<std::span<const std::byte>> unwrap_bundle(const Target& target,
                                                 std::span<const std::byte> binary);

/// Reads what each entry needs to launch out of an AMD code object, version 3 or later.
///
/// Errors:  kDamaged when the bytes are no code object, are another chip's, or lack an entry.
/// Source:  the NT_AMDGPU_METADATA note (LLVM's AMDGPU usage guide); docs/limits.md.
Result<std::vector<LaunchLimits>> read_code_object(std::span<const KernelEntry> entries,
                                                   const Target& target,
                                                   std::span<const std::byte> binary);

}  // namespace broach::specializer
