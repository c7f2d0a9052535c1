#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/device.hpp"
#include "runtime/hip/driver.hpp"

namespace broach::runtime::hip {

/// One GPU as the device and its modules share it.
struct Chip {
  std::shared_ptr<const Driver> driver;
  int ordinal = 0;
  std::string name;
  std::string driver_words;
  specializer::Target target;

  /// "AMD Instinct MI300X (gfx942, driver HIP 6.2.41134)"
  std::string words() const;
};

/// Makes a chip the calling thread's current device, and gives the thread its own back at the end.
class DeviceScope {
 public:
  explicit DeviceScope(const Chip& chip) noexcept;
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

  Status status() const noexcept { return status_; }

 private:
  const Driver& driver_;
  Status status_ = kSuccess;
  int before_ = 0;
  bool changed_ = false;
};

class HipFunction final : public Function {
 public:
  HipFunction(std::shared_ptr<const Chip> chip, std::string name, FunctionHandle function) noexcept
      : chip_(std::move(chip)), name_(std::move(name)), function_(function) {}

  Result<void> launch(const LaunchConfig& config) const override;
  Result<LaunchLimits> live_limits() const override;

  const std::string& name() const noexcept { return name_; }

 private:
  Result<void> check_supported(const LaunchConfig& config) const;

  std::shared_ptr<const Chip> chip_;
  std::string name_;
  FunctionHandle function_;
};

/// A code object loaded from memory.
///
/// Owns:    the run time's module, and the bytes it was loaded from, which HIP goes on reading.
class HipModule final : public Module {
 public:
  /// Errors:  kDriver with HIP's words; kNotFound naming the function.
  static Result<std::unique_ptr<Module>> load(std::shared_ptr<const Chip> chip,
                                              std::span<const std::byte> binary,
                                              std::span<const std::string> functions);
  ~HipModule() override;
  HipModule(const HipModule&) = delete;
  HipModule& operator=(const HipModule&) = delete;

  Result<const Function*> function(std::string_view name) override;
  Result<Symbol> symbol(std::string_view name) override;
  Result<void> set_symbol(std::string_view name, std::span<const std::byte> bytes,
                          Stream stream) override;

 private:
  HipModule(std::shared_ptr<const Chip> chip, std::span<const std::byte> binary)
      : chip_(std::move(chip)), image_(binary.begin(), binary.end()) {}
  Result<Symbol> find_symbol(std::string_view name) const;

  std::shared_ptr<const Chip> chip_;
  std::vector<std::byte> image_;
  ModuleHandle module_ = nullptr;
  std::vector<std::unique_ptr<HipFunction>> functions_;
};

}  // namespace broach::runtime::hip
