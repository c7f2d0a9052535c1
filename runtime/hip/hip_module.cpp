#include "runtime/hip/hip_module.hpp"

#include <fmt/core.h>

#include <utility>

#include "runtime/gpu_function.hpp"

namespace broach::runtime::hip {

std::string Chip::words() const {
  return fmt::format("{} ({}, driver {})", name, target.name, driver_words);
}

DeviceScope::DeviceScope(const Chip& chip) noexcept : driver_(*chip.driver) {
  status_ = driver_.get_device(&before_);
  if (status_ != kSuccess || before_ == chip.ordinal) return;
  status_ = driver_.set_device(chip.ordinal);
  changed_ = status_ == kSuccess;
}

DeviceScope::~DeviceScope() {
  if (changed_) driver_.set_device(before_);
}

Result<void> HipFunction::launch(const LaunchConfig& config) const {
  const DeviceScope scope(*chip_);
  Status status = scope.status();
  if (status == kSuccess) {
    void* params[] = {const_cast<void*>(config.params)};
    status = chip_->driver->launch_kernel(
        function_, config.grid[0], config.grid[1], config.grid[2], config.block_threads, 1, 1,
        config.dynamic_shared_bytes, static_cast<StreamHandle>(config.stream), params, nullptr);
  }
  if (status == kSuccess) return {};
  return driver_error(*chip_->driver, status, words_of_launch(name_, config, chip_->name));
}

Result<LaunchLimits> HipFunction::live_limits() const {
  const Driver& hip = *chip_->driver;
  const DeviceScope scope(*chip_);
  if (scope.status() != kSuccess) return driver_error(hip, scope.status(), "selecting the device");
  return live_limits_of<FunctionAttribute>(
      name_,
      {{FunctionAttribute::kRegisters, &LaunchLimits::registers},
       {FunctionAttribute::kLocalBytes, &LaunchLimits::stack_bytes},
       {FunctionAttribute::kStaticShared, &LaunchLimits::static_shared},
       {FunctionAttribute::kConstantBytes, &LaunchLimits::constant_bytes},
       {FunctionAttribute::kMaxThreads, &LaunchLimits::max_threads}},
      [&](FunctionAttribute attribute, int* value) {
        return hip.function_get_attribute(value, attribute, function_);
      },
      [&](Status status, const std::string& doing) { return driver_error(hip, status, doing); });
}

Result<std::unique_ptr<Module>> HipModule::load(std::shared_ptr<const Chip> chip,
                                                std::span<const std::byte> binary,
                                                std::span<const std::string> functions) {
  if (binary.empty()) return Error{ErrorCode::kDamaged, "the binary to load is empty", {}};
  const DeviceScope scope(*chip);
  const Driver& hip = *chip->driver;
  if (scope.status() != kSuccess) {
    return driver_error(hip, scope.status(), fmt::format("selecting {}", chip->name));
  }
  std::unique_ptr<HipModule> module(new HipModule(std::move(chip), binary));
  if (const Status status = hip.module_load(&module->module_, module->image_.data());
      status != kSuccess) {
    return driver_error(
        hip, status,
        fmt::format("{} refuses a binary of {} bytes", module->chip_->words(), binary.size()));
  }
  for (const std::string& name : functions) {
    FunctionHandle function = nullptr;
    const Status status = hip.module_get_function(&function, module->module_, name.c_str());
    if (status == kNotFoundStatus) {
      return Error{ErrorCode::kNotFound, fmt::format("the binary has no function {}", name), {}};
    }
    if (status != kSuccess) return driver_error(hip, status, fmt::format("loading {}", name));
    module->functions_.push_back(std::make_unique<HipFunction>(module->chip_, name, function));
  }
  return std::unique_ptr<Module>(std::move(module));
}

HipModule::~HipModule() {
  if (module_ == nullptr) return;
  const DeviceScope scope(*chip_);
  if (scope.status() == kSuccess) chip_->driver->module_unload(module_);
}

Result<const Function*> HipModule::function(std::string_view name) {
  return function_named(functions_, name);
}

}  // namespace broach::runtime::hip
