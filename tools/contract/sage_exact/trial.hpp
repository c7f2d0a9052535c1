#pragma once

#include <memory>
#include <string>

#include "broach/result.hpp"
#include "tools/contract/harness/family.hpp"
#include "tools/contract/sage_exact/golden.hpp"

namespace broach::contract::sage_exact {

/// Whether a target's bytes are the golden ones: an sm_90 chip's, and the host's, which has its
/// models.
bool has_golden_bytes(const specializer::Target& target);

/// Loads every boundary's kernels for a case, with a planted fault where one is named.
///
/// Errors:  the specializer's, the forge's and the device's.
Result<std::unique_ptr<Trial>> load_trial(const Bench& bench, const GoldenCase& golden,
                                          const std::string& control);

}  // namespace broach::contract::sage_exact
