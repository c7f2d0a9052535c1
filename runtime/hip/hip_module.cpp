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

Result<void> HipFunction::check_supported(const LaunchConfig& config) const {
  const auto refuse = [&](const char* lack) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{}: {}", words_of_launch(name_, config, chip_->name), lack),
                 {}};
  };
  if (config.cluster[0] != 0) return refuse("AMD's chips have no clusters of blocks");
  if (config.overlap != Overlap::kNone) {
    return refuse("HIP has no programmatic dependent launch");
  }
  if (config.grid_sync != GridSync::kNone && chip_->driver->launch_cooperative == nullptr) {
    return refuse("the HIP run time lacks hipModuleLaunchCooperativeKernel; ROCm 5.5 has it");
  }
  return {};
}

Result<void> HipFunction::launch(const LaunchConfig& config) const {
  if (auto supported = check_supported(config); !supported) return supported;
  const Driver& hip = *chip_->driver;
  const DeviceScope scope(*chip_);
  Status status = scope.status();
  if (status == kSuccess) {
    void* one = nullptr;
    void** const params = driver_params(config, one);
    auto* const stream = static_cast<StreamHandle>(config.stream);
    const auto& [grid_x, grid_y, grid_z] = config.grid;
    const auto& [block_x, block_y, block_z] = config.block;
    status = config.grid_sync == GridSync::kCooperative
                 ? hip.launch_cooperative(function_, grid_x, grid_y, grid_z, block_x, block_y,
                                          block_z, config.dynamic_shared_bytes, stream, params)
                 : hip.launch_kernel(function_, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                                     config.dynamic_shared_bytes, stream, params, nullptr);
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

Result<Symbol> HipModule::find_symbol(std::string_view name) const {
  const Driver& hip = *chip_->driver;
  const std::string text(name);
  Symbol symbol;
  const Status status =
      hip.module_get_global(&symbol.address, &symbol.bytes, module_, text.c_str());
  if (status == kNotFoundStatus) return no_symbol(name);
  if (status != kSuccess) return driver_error(hip, status, "finding the variable " + text);
  return symbol;
}

Result<Symbol> HipModule::symbol(std::string_view name) {
  const DeviceScope scope(*chip_);
  if (scope.status() == kSuccess) return find_symbol(name);
  return driver_error(*chip_->driver, scope.status(), "selecting the device");
}

Result<void> HipModule::set_symbol(std::string_view name, std::span<const std::byte> bytes,
                                   Stream stream) {
  const Driver& hip = *chip_->driver;
  const DeviceScope scope(*chip_);
  if (scope.status() != kSuccess) return driver_error(hip, scope.status(), "selecting the device");
  auto found = find_symbol(name);
  if (!found) return found.error();
  if (auto fits = check_symbol_bytes(name, *found, bytes.size()); !fits) return fits;
  const Status status = hip.copy_to_device_async(found->address, bytes.data(), bytes.size(),
                                                 static_cast<StreamHandle>(stream));
  if (status == kSuccess) return {};
  return driver_error(hip, status,
                      fmt::format("copying {} bytes to the variable {}", bytes.size(), name));
}

}  // namespace broach::runtime::hip
