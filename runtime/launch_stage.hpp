#pragma once

#include <fmt/core.h>

#include <array>
#include <cstdint>
#include <string_view>

#include "broach/result.hpp"
#include "runtime/device.hpp"
#include "specializer/plan.hpp"

namespace broach::runtime {

/// One function of a plan with its block, ready to be given a grid.
struct LaunchStage {
  const Function* function = nullptr;
  std::uint32_t block_threads = 0;
  std::uint32_t dynamic_shared_bytes = 0;
  std::uint32_t block_rows = 0;
  std::uint32_t copy_rows = 0;

  template <class Params>
  Result<void> launch(std::uint32_t x, std::uint32_t y, std::uint32_t z, const Params& params,
                      Stream stream) const {
    LaunchConfig config;
    config.grid[0] = x;
    config.grid[1] = y;
    config.grid[2] = z;
    config.block[0] = block_threads;
    config.dynamic_shared_bytes = dynamic_shared_bytes;
    config.params = &params;
    config.params_bytes = sizeof params;
    config.stream = stream;
    return function->launch(config);
  }
};

/// A plan's functions out of its module, in the plan's order.
///
/// Errors:  kInternal when the plan has another number of functions; `words` names the plan and
///          what it should have.
template <std::size_t kCount>
Result<std::array<LaunchStage, kCount>> pick_stages(const specializer::Plan& plan, Module& module,
                                                    std::string_view words) {
  if (plan.entries.size() != kCount) {
    return Error{
        ErrorCode::kInternal, fmt::format("{}; this one has {}", words, plan.entries.size()), {}};
  }
  std::array<LaunchStage, kCount> stages;
  for (std::size_t i = 0; i < kCount; ++i) {
    const specializer::KernelEntry& entry = plan.entries[i];
    auto function = module.function(entry.function);
    if (!function) return function.error();
    stages[i] = {*function, entry.block_threads, entry.dynamic_shared_bytes, entry.block_rows,
                 entry.copy_rows};
  }
  return stages;
}

}  // namespace broach::runtime
