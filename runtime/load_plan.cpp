#include "runtime/load_plan.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "runtime/driver_version.hpp"
#include "runtime/launch_checks.hpp"

namespace broach::runtime {
namespace {

const LaunchLimits* limits_of(const cache::Object& object, std::string_view function) {
  for (const LaunchLimits& limits : object.limits) {
    if (limits.function == function) return &limits;
  }
  return nullptr;
}

Result<std::unique_ptr<Module>> checked_load(Device& device, const specializer::Plan& plan,
                                             const cache::Object& object) {
  for (const specializer::KernelEntry& entry : plan.entries) {
    const LaunchLimits* limits = limits_of(object, entry.function);
    if (limits == nullptr) continue;
    if (auto fits = check_launch(entry, *limits, plan.target); !fits) return fits.error();
  }
  if (auto served = check_least_driver(device.driver(), object.provenance.least_driver); !served) {
    return served.error();
  }
  std::vector<std::string> functions;
  for (const specializer::KernelEntry& entry : plan.entries) functions.push_back(entry.function);
  return device.load(object.payload, functions);
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
  LoadedPlan loaded;
  for (int attempt = 0;; ++attempt) {
    auto artifact = forge.obtain(plan, on_miss);
    if (!artifact) return artifact.error();
    loaded.artifact = *std::move(artifact);
    const cache::Object& object = *loaded.artifact.object;
    auto module = checked_load(device, plan, object);
    if (module) {
      loaded.module = *std::move(module);
      break;
    }
    const ErrorCode code = module.error().code;
    if (code != ErrorCode::kDriver && code != ErrorCode::kNotFound) return module.error();
    // Bytes that nobody compiled just now may be another toolkit's, or damaged before they were
    // digested: one fresh compile tells.
    if (attempt > 0 || loaded.artifact.compiled || on_miss == specializer::OnMiss::kRefuse) {
      return with_versions(module.error(), device, object);
    }
    forge.cache().distrust(object.key.key, module.error().message);
  }

  const cache::Key key = loaded.artifact.object->key.key;
  for (const specializer::KernelEntry& entry : plan.entries) {
    auto function = loaded.module->function(entry.function);
    if (!function) return function.error();
    auto live = (*function)->live_limits();
    if (!live) return live.error();
    forge.cache().record_device_limits(
        {key, std::string(device.name()), std::string(device.driver()), *live});
    loaded.live.push_back(*std::move(live));
  }
  return loaded;
}

}  // namespace broach::runtime
