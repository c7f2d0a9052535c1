#pragma once

#include <string>
#include <utility>
#include <vector>

#include "specializer/limits.hpp"
#include "tests/fuzz/target.hpp"

namespace broach::fuzz {

/// A plan whose binary an input claims to be.
inline specializer::Plan plan_for(const char* target, specializer::ArtifactKind kind,
                                  std::vector<specializer::KernelEntry> entries) {
  specializer::Plan plan;
  plan.target = *specializer::parse_target(target);
  plan.kind = kind;
  plan.entries = std::move(entries);
  return plan;
}

}  // namespace broach::fuzz
