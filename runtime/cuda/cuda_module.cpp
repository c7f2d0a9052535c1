#include "runtime/cuda/cuda_module.hpp"

#include <fmt/core.h>

#include <array>

#include "runtime/gpu_function.hpp"

namespace broach::runtime::cuda {
namespace {

bool refuses_binary(Status status) noexcept {
  return status == kInvalidImage || status == kNoBinaryForGpu || status == kUnsupportedPtxVersion ||
         status == kInvalidSource;
}

/// Whether the launch needs more than cuLaunchKernel takes.
bool is_extended(const LaunchConfig& config) noexcept {
  return config.cluster[0] != 0 || config.grid_sync != GridSync::kNone ||
         config.overlap != Overlap::kNone;
}

}  // namespace

Result<void> CudaFunction::launch(const LaunchConfig& config) const {
  const Driver& cu = *chip_->driver;
  const ContextScope scope(*chip_);
  Status status = scope.status();
  if (status == kSuccess) {
    // The driver takes a library's kernel wherever it takes a function.
    const FunctionHandle function =
        scope.primary() ? function_ : reinterpret_cast<FunctionHandle>(kernel_);
    void* one = nullptr;
    void** const params = driver_params(config, one);
    if (is_extended(config)) {
      if (cu.launch_kernel_ex == nullptr) return too_old_for(config);
      status = launch_extended(function, config, params);
    } else {
      status = cu.launch_kernel(function, config.grid[0], config.grid[1], config.grid[2],
                                config.block[0], config.block[1], config.block[2],
                                config.dynamic_shared_bytes,
                                static_cast<StreamHandle>(config.stream), params, nullptr);
    }
  }
  if (status == kSuccess) return {};
  return driver_error(cu, status, words_of_launch(name_, config, chip_->name));
}

Error CudaFunction::too_old_for(const LaunchConfig& config) const {
  return Error{ErrorCode::kUnsupported,
               words_of_launch(name_, config, chip_->name) +
                   " needs cuLaunchKernelEx, which the driver has since CUDA 11.8",
               {}};
}

Status CudaFunction::launch_extended(FunctionHandle function, const LaunchConfig& config,
                                     void** params) const {
  std::array<LaunchAttribute, 3> attributes{};
  unsigned count = 0;
  if (config.cluster[0] != 0) {
    LaunchAttribute& attribute = attributes[count++];
    attribute.id = LaunchAttributeId::kClusterDims;
    for (int i = 0; i < 3; ++i) attribute.cluster[i] = config.cluster[i];
    // Clusters of more than 8 blocks run on some chips only: the driver wants to be told.
    const std::uint64_t blocks = std::uint64_t{config.cluster[0]} * config.cluster[1];
    if (blocks > 8 || blocks * config.cluster[2] > 8) {
      std::call_once(large_clusters_, [this] { allow_large_clusters(); });
    }
  }
  if (config.grid_sync == GridSync::kCooperative) {
    LaunchAttribute& attribute = attributes[count++];
    attribute.id = LaunchAttributeId::kCooperative;
    attribute.on = 1;
  }
  if (config.overlap == Overlap::kProgrammatic) {
    LaunchAttribute& attribute = attributes[count++];
    attribute.id = LaunchAttributeId::kProgrammaticOverlap;
    attribute.on = 1;
  }
  const ExtendedLaunch launch{{config.grid[0], config.grid[1], config.grid[2]},
                              {config.block[0], config.block[1], config.block[2]},
                              config.dynamic_shared_bytes,
                              static_cast<StreamHandle>(config.stream),
                              attributes.data(),
                              count};
  return chip_->driver->launch_kernel_ex(&launch, function, params, nullptr);
}

// A refusal shows as that of the launch, whose words say more.
void CudaFunction::allow_large_clusters() const {
  const Driver& cu = *chip_->driver;
  cu.function_set_attribute(function_, FunctionAttribute::kLargeClusters, 1);
  if (kernel_ != nullptr) {
    cu.kernel_set_attribute(FunctionAttribute::kLargeClusters, 1, kernel_, chip_->device);
  }
}

Result<LaunchLimits> CudaFunction::live_limits() const {
  const Driver& cu = *chip_->driver;
  const ContextScope scope(*chip_);
  if (scope.status() != kSuccess) return driver_error(cu, scope.status(), "entering the context");
  return live_limits_of<FunctionAttribute>(
      name_,
      {{FunctionAttribute::kRegisters, &LaunchLimits::registers},
       {FunctionAttribute::kLocalBytes, &LaunchLimits::stack_bytes},
       {FunctionAttribute::kStaticShared, &LaunchLimits::static_shared},
       {FunctionAttribute::kMaxDynamicShared, &LaunchLimits::max_dynamic_shared},
       {FunctionAttribute::kConstantBytes, &LaunchLimits::constant_bytes},
       {FunctionAttribute::kMaxThreads, &LaunchLimits::max_threads}},
      [&](FunctionAttribute attribute, int* value) {
        return cu.function_get_attribute(value, attribute, function_);
      },
      [&](Status status, const std::string& doing) { return driver_error(cu, status, doing); });
}

Result<TensorMap> CudaFunction::tensor_map(const TensorLayout& layout) const {
  // cuda.h's enumerators: 16-bit elements, rows of 128 bytes swizzled, L2 lines fetched in pairs.
  constexpr int kUint16 = 1, kNoInterleave = 0, kSwizzle128 = 3, kPromote256 = 3, kZeros = 0;
  const Driver& cu = *chip_->driver;
  if (cu.tensor_map_encode == nullptr) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{} needs tensor maps, which the driver has since CUDA 12.0", name_),
                 {}};
  }
  const ContextScope scope(*chip_);
  if (scope.status() != kSuccess) return driver_error(cu, scope.status(), "entering the context");
  alignas(64) TensorMap map;
  constexpr std::array<std::uint32_t, 5> kDense{1, 1, 1, 1, 1};
  const Status status =
      cu.tensor_map_encode(map.words.data(), kUint16, 5, const_cast<void*>(layout.data),
                           layout.dims.data(), layout.strides.data(), layout.box.data(),
                           kDense.data(), kNoInterleave, kSwizzle128, kPromote256, kZeros);
  if (status == kSuccess) return map;
  return driver_error(cu, status, fmt::format("describing a tensor for {}", name_));
}

Result<void> CudaFunction::allow_dynamic_shared() {
  const Driver& cu = *chip_->driver;
  int static_shared = 0;
  Status status =
      cu.function_get_attribute(&static_shared, FunctionAttribute::kStaticShared, function_);
  const int rest = static_cast<int>(chip_->shared_opt_in_bytes) - static_shared;
  if (status == kSuccess && rest > 0) {
    status = cu.function_set_attribute(function_, FunctionAttribute::kMaxDynamicShared, rest);
    if (status == kSuccess && kernel_ != nullptr) {
      status = cu.kernel_set_attribute(FunctionAttribute::kMaxDynamicShared, rest, kernel_,
                                       chip_->device);
    }
  }
  if (status == kSuccess) return {};
  return driver_error(cu, status,
                      fmt::format("allowing {} {} bytes of dynamic shared memory", name_, rest));
}

Status CudaModule::open(const void* image, std::string& log) {
  const Driver& cu = *chip_->driver;
  std::array<char, 8192> text{};
  std::array<JitOption, 2> names{JitOption::kErrorLogBuffer, JitOption::kErrorLogBufferBytes};
  std::array<void*, 2> values{text.data(), reinterpret_cast<void*>(text.size() - 1)};
  const Status status =
      cu.has_libraries()
          ? cu.library_load(&library_, image, names.data(), values.data(), names.size(), nullptr,
                            nullptr, 0)
          : cu.module_load(&module_, image, names.size(), names.data(), values.data());
  log += text.data();
  return status;
}

Result<void> CudaModule::resolve(const std::string& name) {
  const Driver& cu = *chip_->driver;
  FunctionHandle function = nullptr;
  KernelHandle kernel = nullptr;
  Status status = kSuccess;
  if (library_ != nullptr) {
    status = cu.library_get_kernel(&kernel, library_, name.c_str());
    if (status == kSuccess) status = cu.kernel_get_function(&function, kernel);
  } else {
    status = cu.module_get_function(&function, module_, name.c_str());
  }
  if (status == kNotFoundStatus) {
    return Error{ErrorCode::kNotFound, fmt::format("the binary has no function {}", name), {}};
  }
  if (status != kSuccess) {
    return driver_error(cu, status, fmt::format("loading {} on {}", name, chip_->words()));
  }
  auto loaded = std::make_unique<CudaFunction>(chip_, name, function, kernel);
  if (auto allowed = loaded->allow_dynamic_shared(); !allowed) return allowed.error();
  functions_.push_back(std::move(loaded));
  return {};
}

Result<std::unique_ptr<Module>> CudaModule::load(std::shared_ptr<const Chip> chip,
                                                 std::span<const std::byte> binary,
                                                 std::span<const std::string> functions) {
  const Driver& cu = *chip->driver;
  if (binary.empty()) return Error{ErrorCode::kDamaged, "the binary to load is empty", {}};
  const ContextScope scope(*chip);
  if (scope.status() != kSuccess) {
    return driver_error(cu, scope.status(), fmt::format("entering a context of {}", chip->name));
  }
  const RelaxedCapture relaxed(cu);
  std::unique_ptr<CudaModule> module(new CudaModule(std::move(chip)));
  std::string log;
  if (const Status status = module->open(binary.data(), log); status != kSuccess) {
    Error error = driver_error(
        cu, status,
        fmt::format("{} {} a binary of {} bytes", module->chip_->words(),
                    refuses_binary(status) ? "refuses" : "cannot load", binary.size()));
    error.detail = log;
    return error;
  }
  for (const std::string& name : functions) {
    if (auto resolved = module->resolve(name); !resolved) {
      Error error = resolved.error();
      error.detail += log;
      return error;
    }
  }
  return std::unique_ptr<Module>(std::move(module));
}

CudaModule::~CudaModule() {
  const Driver& cu = *chip_->driver;
  const ContextScope scope(*chip_);
  if (scope.status() != kSuccess) return;
  if (library_ != nullptr) cu.library_unload(library_);
  if (module_ != nullptr) cu.module_unload(module_);
}

Result<const Function*> CudaModule::function(std::string_view name) {
  return function_named(functions_, name);
}

// In the context that is current: a library has its variables once a context.
Result<Symbol> CudaModule::find_symbol(std::string_view name) const {
  const Driver& cu = *chip_->driver;
  const std::string text(name);
  DevicePointer memory = 0;
  std::size_t bytes = 0;
  const Status status = library_ != nullptr
                            ? cu.library_get_global(&memory, &bytes, library_, text.c_str())
                            : cu.module_get_global(&memory, &bytes, module_, text.c_str());
  if (status == kNotFoundStatus) return no_symbol(name);
  if (status != kSuccess) return driver_error(cu, status, "finding the variable " + text);
  return Symbol{reinterpret_cast<void*>(memory), bytes};
}

Result<Symbol> CudaModule::symbol(std::string_view name) {
  const ContextScope scope(*chip_);
  if (scope.status() != kSuccess) {
    return driver_error(*chip_->driver, scope.status(), "entering the context");
  }
  return find_symbol(name);
}

Result<void> CudaModule::set_symbol(std::string_view name, std::span<const std::byte> bytes,
                                    Stream stream) {
  const Driver& cu = *chip_->driver;
  const ContextScope scope(*chip_);
  if (scope.status() != kSuccess) return driver_error(cu, scope.status(), "entering the context");
  auto found = find_symbol(name);
  if (!found) return found.error();
  if (auto fits = check_symbol_bytes(name, *found, bytes.size()); !fits) return fits;
  const Status status =
      cu.copy_to_device_async(reinterpret_cast<DevicePointer>(found->address), bytes.data(),
                              bytes.size(), static_cast<StreamHandle>(stream));
  if (status == kSuccess) return {};
  return driver_error(cu, status,
                      fmt::format("copying {} bytes to the variable {}", bytes.size(), name));
}

}  // namespace broach::runtime::cuda
