#include "runtime/load_plan.hpp"

#include <fmt/core.h>

#include <string>
#include <utility>

#include "cache/metrics.hpp"
#include "runtime/driver_version.hpp"
#include "runtime/launch_checks.hpp"

namespace broach::runtime {
namespace {

// The rows of a binary are its plan's entries in their order, where one has another name in it.
const LaunchLimits* limits_of(const cache::Object& object, const specializer::Plan& plan,
                              std::size_t entry) {
  if (!plan.entries[entry].expression.empty()) {
    return entry < object.limits.size() ? &object.limits[entry] : nullptr;
  }
  for (const LaunchLimits& limits : object.limits) {
    if (limits.function == plan.entries[entry].function) return &limits;
  }
  return nullptr;
}

// What the binary calls each entry.
std::vector<std::string> symbols_of(const cache::Object& object, const specializer::Plan& plan) {
  std::vector<std::string> symbols;
  for (std::size_t i = 0; i < plan.entries.size(); ++i) {
    const LaunchLimits* limits = limits_of(object, plan, i);
    symbols.push_back(limits == nullptr ? plan.entries[i].function : limits->function);
  }
  return symbols;
}

/// What can be said without asking the driver to load the binary.
Result<void> check_binary(const Device& device, const specializer::Plan& plan,
                          const cache::Object& object) {
  for (std::size_t i = 0; i < plan.entries.size(); ++i) {
    const LaunchLimits* limits = limits_of(object, plan, i);
    if (limits == nullptr) continue;
    if (auto fits = check_launch(plan.entries[i], *limits, plan.target); !fits) return fits;
  }
  return check_least_driver(device.driver_version(), device.driver(),
                            specializer::parse_cuda_words(object.provenance.least_driver));
}

Error with_versions(Error error, const Device& device, const cache::Object& object) {
  const cache::Provenance& from = object.provenance;
  error.message += fmt::format(
      "; binary {} for {} by {}{}{}, driver {}", object.key.key.hex(), object.description.target,
      from.toolkit.empty() ? object.description.compiler : from.toolkit,
      from.least_driver.empty() ? "" : ", which needs ", from.least_driver, device.driver());
  return error;
}

}  // namespace

Result<LoadedPlan> load_plan(specializer::Forge& forge, Device& device,
                             const specializer::Plan& plan, specializer::OnMiss on_miss) {
  if (plan.target.name != device.target().name) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("a plan for {} cannot be loaded on {}, which is {}", plan.target.name,
                             device.name(), device.target().name),
                 {}};
  }
  LoadedPlan loaded;
  while (loaded.module == nullptr) {
    const bool is_second = loaded.artifact.object != nullptr;
    auto artifact = forge.obtain(plan, on_miss);
    if (!artifact) return artifact.error();
    loaded.artifact = *std::move(artifact);
    const cache::Object& object = *loaded.artifact.object;
    if (auto fits = check_binary(device, plan, object); !fits) {
      return with_versions(fits.error(), device, object);
    }
    const cache::Stopwatch watch;
    auto module = device.load(object.payload, symbols_of(object, plan));
    forge.cache().metrics().record(module ? cache::Timing::kLoadDone : cache::Timing::kLoadRefused,
                                   watch.elapsed());
    if (module) {
      loaded.module = *std::move(module);
      break;
    }
    // Bytes that nobody compiled just now may be another toolkit's, or damaged before they were
    // digested: one fresh compile tells.
    if (is_second || loaded.artifact.compiled || on_miss == specializer::OnMiss::kRefuse) {
      return with_versions(module.error(), device, object);
    }
    forge.cache().distrust(object.key.key, module.error().message);
  }

  for (const std::string& symbol : symbols_of(*loaded.artifact.object, plan)) {
    auto function = loaded.module->function(symbol);
    if (!function) return function.error();
    auto live = (*function)->live_limits();
    if (!live) return live.error();
    loaded.live.push_back(*std::move(live));
  }
  return loaded;
}

void record_live_limits(cache::Cache& cache, const Device& device, const cache::Key& key,
                        const std::vector<LaunchLimits>& live) {
  for (const LaunchLimits& limits : live) {
    cache.record_device_limits(
        {key, std::string(device.name()), std::string(device.driver()), limits});
  }
}

}  // namespace broach::runtime
