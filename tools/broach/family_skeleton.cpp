#include "tools/broach/family_skeleton.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace broach::tool {
namespace {

constexpr char kFamily[] = R"({{
  "family": 1,
  "name": "{name}",
  "parameters": [
    {{"name": "items", "type": "int", "range": [1, 64], "default": 4, "constant": "kItems"}}
  ],
  "sources": ["{source}"],
  "functions": ["{function}"],
  "targets": ["sm_75+", "gfx900+", "host"],
  "refuse": ["spills"]
}}
)";

constexpr char kSource[] = R"(#include "broach/kernel.cuh"

constexpr unsigned kThreads = 256;

// y = factor * x over `count` values. A block takes kThreads * kItems of them.
struct Params {{
  const float* x;
  float* y;
  unsigned count;
  float factor;
}};

BROACH_KERNEL({function}, kThreads, Params, broach::NoShared) {{
  BROACH_UNROLL
  for (int item = 0; item < kItems; ++item) {{
    const unsigned i = (thread.block_x() * kItems + item) * kThreads + thread.index();
    if (i < params.count) params.y[i] = params.factor * params.x[i];
  }}
}}
)";

}  // namespace

FamilySkeleton skeleton_of(std::string_view name) {
  const std::string part(name.substr(name.rfind('.') + 1));
  std::string function(name);
  std::replace(function.begin(), function.end(), '.', '_');
  FamilySkeleton skeleton;
  skeleton.family_file = part + ".family.json";
  skeleton.source_file = part + ".cuh";
  skeleton.family_text =
      fmt::format(kFamily, fmt::arg("name", name), fmt::arg("source", skeleton.source_file),
                  fmt::arg("function", function));
  skeleton.source_text = fmt::format(kSource, fmt::arg("function", function));
  skeleton.shape = fmt::format("{} items=4", name);
  return skeleton;
}

}  // namespace broach::tool
