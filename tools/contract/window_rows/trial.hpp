#pragma once

#include <memory>

#include "broach/result.hpp"
#include "specializer/plan.hpp"
#include "tools/contract/harness/family.hpp"
#include "tools/contract/window_rows/cases.hpp"

namespace broach::contract::window_rows {

/// Loads a case's kernel on a bench, or a variant of it. Inputs are made when they are first
/// needed.
///
/// Errors:  the plan's, the forge's and the device's.
Result<std::unique_ptr<Trial>> load_trial(const Bench& bench, const CaseSpec& spec,
                                          const specializer::Variant& variant);

}  // namespace broach::contract::window_rows
