#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "broach/sage_exact.hpp"
#include "broach/types.hpp"
#include "specializer/family.hpp"
#include "specializer/target.hpp"

namespace broach::specializer::sage_exact {

/// The schedule that a target is served with.
SageSchedule schedule_for(const Target& target);

/// The planted faults that a boundary's kernels have.
std::span<const std::string_view> controls_of(SageBoundary boundary);

/// What is rendered: a shape as it is served, and its variant.
struct SourceRequest {
  SageExactShape shape;
  std::string_view control;
  Switch generic = Switch::kOff;
};

/// A boundary's main source. A fault that is not among its own renders the plain source.
std::string main_source(const SourceRequest& request);

/// Its functions.
std::vector<KernelEntry> entries_of(const SageExactShape& shape);

}  // namespace broach::specializer::sage_exact
