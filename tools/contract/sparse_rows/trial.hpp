#pragma once

#include <memory>

#include "tools/contract/harness/family.hpp"
#include "tools/contract/sparse_rows/cases.hpp"

namespace broach::contract::sparse_rows {

/// A case's kernel on a bench, with the gates of the family.
///
/// Errors:  the specializer's, the forge's and the device's.
Result<std::unique_ptr<Trial>> load_trial(const Bench& bench, const CaseSpec& tried,
                                          const specializer::Variant& variant);

}  // namespace broach::contract::sparse_rows
