#include "tools/contract/harness/limits_scope.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include "specializer/target.hpp"

namespace broach::contract {
namespace {

// Chips whose code or limits are another chip's no more than their name is: the plain and the
// family's targets, and those of the same generation and size, have their code.
constexpr std::string_view kDeepTargets[] = {
    "sm_80",   "sm_86",   "sm_87",   "sm_89",   "sm_90a",  "sm_100a", "sm_103a",       "sm_110a",
    "sm_120a", "sm_121a", "gfx906",  "gfx908",  "gfx90a",  "gfx942",  "gfx950",        "gfx1030",
    "gfx1100", "gfx1101", "gfx1102", "gfx1151", "gfx1200", "gfx1201", "host-x86-64-v3"};

// One chip of each kind.
constexpr std::string_view kQuickTargets[] = {"sm_80",  "sm_90a",  "sm_120a",       "gfx90a",
                                              "gfx942", "gfx1100", "host-x86-64-v3"};

template <std::size_t kCount>
bool holds(const std::string_view (&names)[kCount], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

std::vector<LimitKernel> kernels_of(std::span<const ContractFamily* const> families,
                                    LimitDepth depth) {
  std::vector<LimitKernel> kernels;
  for (const ContractFamily* const family : families) {
    std::vector<LimitKernel> more = family->limit_kernels(depth);
    kernels.insert(kernels.end(), std::make_move_iterator(more.begin()),
                   std::make_move_iterator(more.end()));
  }
  return kernels;
}

LimitDepth deepest(Sweep sweep) {
  return sweep == Sweep::kWhole ? LimitDepth::kEvery : LimitDepth::kWidest;
}

}  // namespace

std::vector<LimitKernel> deepest_kernels(std::span<const ContractFamily* const> families,
                                         Sweep sweep) {
  return kernels_of(families, deepest(sweep));
}

std::vector<LimitScope> limit_scopes(std::span<const ContractFamily* const> families, Sweep sweep) {
  const bool whole = sweep == Sweep::kWhole;
  const std::vector<LimitKernel> deep = kernels_of(families, deepest(sweep));
  const std::vector<LimitKernel> others =
      kernels_of(families, whole ? LimitDepth::kWidest : LimitDepth::kOneOfEach);
  std::vector<LimitScope> scopes;
  for (const std::string_view name : specializer::known_targets()) {
    const bool is_deep = whole ? holds(kDeepTargets, name) : holds(kQuickTargets, name);
    scopes.push_back({std::string(name), is_deep ? deep : others});
  }
  return scopes;
}

}  // namespace broach::contract
