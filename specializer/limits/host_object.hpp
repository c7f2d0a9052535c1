#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "broach/result.hpp"
#include "broach/types.hpp"
#include "specializer/plan.hpp"

namespace broach::specializer {

/// Reads the record that the host shim exports beside each kernel, without loading the object.
///
/// Errors:  kDamaged when the bytes are no shared object, lack an entry, or have another version
///          of the record.
/// Source:  kernel_src/host/abi.h.
Result<std::vector<LaunchLimits>> read_host_object(std::span<const KernelEntry> entries,
                                                   const Target& target,
                                                   std::span<const std::byte> binary);

}  // namespace broach::specializer
