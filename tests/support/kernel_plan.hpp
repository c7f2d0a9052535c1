#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "specializer/options.hpp"
#include "specializer/plan.hpp"
#include "specializer/sources.hpp"
#include "tests/support/catch.hpp"

namespace broach::test {

/// The plan of a source that may include the SDK header, with the library's own options. Its
/// functions say their geometry themselves.
inline specializer::Plan kernel_plan(const specializer::Target& target, std::string source,
                                     std::vector<std::string> functions) {
  using specializer::ArtifactKind;
  using specializer::Vendor;
  specializer::Plan plan;
  plan.family = "test.kernels";
  plan.target = target;
  plan.shape_json = "{}";
  plan.kind = target.vendor == Vendor::kNvidia ? ArtifactKind::kCubin
              : target.vendor == Vendor::kAmd  ? ArtifactKind::kCodeObject
                                               : ArtifactKind::kHostSharedObject;
  auto sources = specializer::close_over_includes("main.cu", std::move(source), target.vendor,
                                                  specializer::embedded_sources());
  if (!sources) FAIL(sources.error().message);
  plan.sources = *std::move(sources);
  plan.options = specializer::compiler_options(target);
  for (std::string& function : functions) plan.entries.push_back({std::move(function), 0, 0});
  return plan;
}

}  // namespace broach::test
