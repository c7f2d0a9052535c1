#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "specializer/plan.hpp"
#include "tools/contract/harness/digests.hpp"
#include "tools/contract/harness/family.hpp"
#include "tools/contract/window_rows/cases.hpp"

namespace broach::contract::window_rows {

/// The family's contract, which families.cpp registers.
const ContractFamily& family();

/// A case for the harness, of the kernel that the public interface serves or of a variant.
std::shared_ptr<const Case> case_of(CaseSpec spec, specializer::Variant variant = {});

/// What a harness's case was made of, or null when it is another family's.
const CaseSpec* spec_of(const Case& one) noexcept;

/// The digests that the family pins.
const PinnedDigests& pinned_digests();

}  // namespace broach::contract::window_rows
