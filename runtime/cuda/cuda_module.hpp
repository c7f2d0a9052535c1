#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "runtime/cuda/chip.hpp"
#include "runtime/device.hpp"

namespace broach::runtime::cuda {

/// A kernel in the primary context and, where the driver has libraries, in any context.
class CudaFunction final : public Function {
 public:
  CudaFunction(std::shared_ptr<const Chip> chip, std::string name, FunctionHandle function,
               KernelHandle kernel) noexcept
      : chip_(std::move(chip)), name_(std::move(name)), function_(function), kernel_(kernel) {}

  Result<void> launch(const LaunchConfig& config) const override;
  Result<LaunchLimits> live_limits() const override;
  Result<TensorMap> tensor_map(const TensorLayout& layout) const override;

  const std::string& name() const noexcept { return name_; }

  /// Allows as much dynamic shared memory as the chip has beside the function's static share: the
  /// driver refuses more than 48 KiB without this.
  Result<void> allow_dynamic_shared();

 private:
  Status launch_extended(FunctionHandle function, const LaunchConfig& config, void** params) const;
  void allow_large_clusters() const;
  Error too_old_for(const LaunchConfig& config) const;

  std::shared_ptr<const Chip> chip_;
  std::string name_;
  FunctionHandle function_;
  KernelHandle kernel_;
  mutable std::once_flag large_clusters_;
};

/// A cubin loaded from memory.
///
/// Owns:    the driver's library, or its module where the driver has no libraries.
class CudaModule final : public Module {
 public:
  /// Loads and resolves everything now, so that a first launch loads nothing lazily.
  ///
  /// Errors:  kDriver with the driver's words and its log; kNotFound naming the function.
  static Result<std::unique_ptr<Module>> load(std::shared_ptr<const Chip> chip,
                                              std::span<const std::byte> binary,
                                              std::span<const std::string> functions);
  ~CudaModule() override;
  CudaModule(const CudaModule&) = delete;
  CudaModule& operator=(const CudaModule&) = delete;

  Result<const Function*> function(std::string_view name) override;
  Result<Symbol> symbol(std::string_view name) override;
  Result<void> set_symbol(std::string_view name, std::span<const std::byte> bytes,
                          Stream stream) override;

 private:
  explicit CudaModule(std::shared_ptr<const Chip> chip) noexcept : chip_(std::move(chip)) {}
  Status open(const void* image, std::string& log);
  Result<void> resolve(const std::string& name);
  Result<Symbol> find_symbol(std::string_view name) const;

  std::shared_ptr<const Chip> chip_;
  LibraryHandle library_ = nullptr;
  ModuleHandle module_ = nullptr;
  std::vector<std::unique_ptr<CudaFunction>> functions_;
};

}  // namespace broach::runtime::cuda
