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

// One chip of each generation: the gate of a change, where every target is the gate of a release.
constexpr std::string_view kGenerationTargets[] = {
    "sm_75",   "sm_80",   "sm_86",   "sm_89",   "sm_90a",         "sm_100",
    "sm_120",  "gfx906",  "gfx908",  "gfx90a",  "gfx942",         "gfx950",
    "gfx1030", "gfx1100", "gfx1151", "gfx1201", "host-x86-64-v3", "host-aarch64"};

// Of these, the one whose kernels are the most: every kind and schedule has one there.
constexpr std::string_view kBroadestTarget = "sm_90a";

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

bool is_deep(std::string_view target, Sweep sweep, LimitTargets targets) {
  if (sweep == Sweep::kWhole) return holds(kDeepTargets, target);
  return targets == LimitTargets::kEvery ? holds(kQuickTargets, target) : target == kBroadestTarget;
}

}  // namespace

std::vector<LimitKernel> deepest_kernels(std::span<const ContractFamily* const> families,
                                         Sweep sweep) {
  return kernels_of(families, deepest(sweep));
}

std::vector<LimitScope> limit_scopes(std::span<const ContractFamily* const> families, Sweep sweep,
                                     LimitTargets targets) {
  const bool whole = sweep == Sweep::kWhole;
  const std::vector<LimitKernel> deep = kernels_of(families, deepest(sweep));
  const std::vector<LimitKernel> others =
      kernels_of(families, whole ? LimitDepth::kWidest : LimitDepth::kOneOfEach);
  std::vector<LimitScope> scopes;
  for (const std::string_view name : specializer::known_targets()) {
    if (targets == LimitTargets::kGenerations && !holds(kGenerationTargets, name)) continue;
    scopes.push_back({std::string(name), is_deep(name, sweep, targets) ? deep : others});
  }
  return scopes;
}

}  // namespace broach::contract
