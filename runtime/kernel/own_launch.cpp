#include "runtime/kernel/own_launch.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "runtime/launch_checks.hpp"
#include "specializer/own/own_family.hpp"

namespace broach::runtime {
namespace {

using specializer::own::OwnFamily;
using Dims = std::array<std::uint32_t, 3>;

// More parameters than any kernel has that a compiler takes (4 KiB of them; 32 KiB on later chips).
constexpr std::size_t kMostArguments = 256;

std::uint32_t saturated(std::size_t bytes) {
  return static_cast<std::uint32_t>(std::min<std::size_t>(bytes, UINT32_MAX));
}

bool is_given(const Dims& dims) { return dims != Dims{0, 0, 0}; }

}  // namespace

Result<std::unique_ptr<const Launch>> OwnLaunch::make(const LaunchParts& parts) {
  const auto& family = static_cast<const OwnFamily&>(parts.served.family());
  const auto& described = family.description().functions;
  if (described.size() != parts.plan.entries.size() || described.size() != parts.limits.size()) {
    return Error{ErrorCode::kInternal,
                 fmt::format("a plan of {} has another number of functions", family.name()),
                 {}};
  }
  std::unique_ptr<OwnLaunch> launch(new OwnLaunch(parts.target, parts.module));
  for (std::size_t i = 0; i < described.size(); ++i) {
    // In the binary it may have another name: the compiler's for an instance of a template.
    auto function = parts.module.function(parts.limits[i].function);
    if (!function) return function.error();
    launch->functions_.push_back({described[i].name, *function, parts.limits[i], described[i].block,
                                  described[i].dynamic_shared, described[i].cluster});
  }
  return std::unique_ptr<const Launch>(std::move(launch));
}

const OwnLaunch::OneFunction* OwnLaunch::find(std::string_view function) const noexcept {
  for (const OneFunction& each : functions_) {
    if (each.name == function) return &each;
  }
  return nullptr;
}

Result<void> OwnLaunch::launch(std::string_view function, const KernelLaunch& launch,
                               std::span<const KernelArgument> arguments, Stream stream) const {
  const OneFunction* const wanted = find(function);
  if (wanted == nullptr) {
    std::string names;
    for (const OneFunction& each : functions_) names += (names.empty() ? "" : ", ") + each.name;
    return Error{ErrorCode::kNotFound,
                 fmt::format("the kernel has no function \"{}\"; it has {}", function, names),
                 {}};
  }
  if (arguments.size() > kMostArguments) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} arguments for {}; at most {} work", arguments.size(), function,
                             kMostArguments),
                 {}};
  }
  LaunchConfig config;
  std::copy(launch.grid.begin(), launch.grid.end(), config.grid);
  const Dims block = is_given(launch.block) ? launch.block : wanted->block.value_or(Dims{0, 0, 0});
  std::copy(block.begin(), block.end(), config.block);
  const Dims cluster =
      is_given(launch.cluster) ? launch.cluster : wanted->cluster.value_or(Dims{0, 0, 0});
  std::copy(cluster.begin(), cluster.end(), config.cluster);
  config.dynamic_shared_bytes =
      launch.dynamic_shared_bytes.value_or(wanted->dynamic_shared.value_or(0));
  config.grid_sync = launch.cooperative == Switch::kOn ? GridSync::kCooperative : GridSync::kNone;
  config.overlap = launch.programmatic == Switch::kOn ? Overlap::kProgrammatic : Overlap::kNone;
  config.stream = stream;

  take_stated_geometry(config, wanted->limits);

  std::array<const void*, kMostArguments> pointers;
  std::array<std::uint32_t, kMostArguments> bytes;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].data == nullptr) {
      return Error{
          ErrorCode::kInvalidArgument,
          fmt::format("argument {} of {} has no value: it is a pointer to one", i, function),
          {}};
    }
    pointers[i] = arguments[i].data;
    bytes[i] = saturated(arguments[i].bytes);
  }
  if (arguments.size() == 1) {
    config.params = arguments[0].data;
    config.params_bytes = arguments[0].bytes;
  } else {
    config.arguments = std::span<const void* const>(pointers.data(), arguments.size());
  }
  const std::span<const std::uint32_t> sizes(bytes.data(), config.arguments.size());
  if (auto fits = check_launch(config, wanted->limits, *target_, sizes); !fits) return fits;
  return wanted->function->launch(config);
}

}  // namespace broach::runtime
