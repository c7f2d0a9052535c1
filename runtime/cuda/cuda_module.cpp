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

}  // namespace

Result<void> CudaFunction::launch(const LaunchConfig& config) const {
  const Driver& cu = *chip_->driver;
  const ContextScope scope(*chip_);
  Status status = scope.status();
  if (status == kSuccess) {
    // The driver takes a library's kernel wherever it takes a function.
    const FunctionHandle function =
        scope.primary() ? function_ : reinterpret_cast<FunctionHandle>(kernel_);
    void* params[] = {const_cast<void*>(config.params)};
    status = cu.launch_kernel(function, config.grid[0], config.grid[1], config.grid[2],
                              config.block_threads, 1, 1, config.dynamic_shared_bytes,
                              static_cast<StreamHandle>(config.stream), params, nullptr);
  }
  if (status == kSuccess) return {};
  return driver_error(cu, status, words_of_launch(name_, config, chip_->name));
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

}  // namespace broach::runtime::cuda
