#include "runtime/cuda/driver.hpp"

#include <fmt/core.h>

#include <array>
#include <cctype>

#include "runtime/driver_library.hpp"

namespace broach::runtime::cuda {
namespace {

constexpr std::array<const char*, 2> kSearch{"libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"};

/// Fills the table; the name of the first required entry point that is missing, or null.
const char* fill(const DriverLibrary& library, Driver& driver) {
  EntryPoints points(library);
  const auto required = [&](const char* name, auto& entry) { points.required(name, entry); };
  required("cuInit", driver.init);
  required("cuDriverGetVersion", driver.driver_get_version);
  required("cuGetErrorName", driver.get_error_name);
  required("cuGetErrorString", driver.get_error_string);
  required("cuDeviceGetCount", driver.device_get_count);
  required("cuDeviceGet", driver.device_get);
  required("cuDeviceGetName", driver.device_get_name);
  required("cuDeviceGetAttribute", driver.device_get_attribute);
  required("cuDevicePrimaryCtxRetain", driver.primary_retain);
  required("cuDevicePrimaryCtxRelease_v2", driver.primary_release);
  required("cuCtxGetCurrent", driver.context_get_current);
  required("cuCtxGetDevice", driver.context_get_device);
  required("cuCtxPushCurrent_v2", driver.context_push);
  required("cuCtxPopCurrent_v2", driver.context_pop);
  required("cuCtxSynchronize", driver.context_synchronize);
  required("cuModuleLoadDataEx", driver.module_load);
  required("cuModuleUnload", driver.module_unload);
  required("cuModuleGetFunction", driver.module_get_function);
  required("cuFuncGetAttribute", driver.function_get_attribute);
  required("cuFuncSetAttribute", driver.function_set_attribute);
  required("cuLaunchKernel", driver.launch_kernel);
  required("cuStreamIsCapturing", driver.stream_is_capturing);
  required("cuStreamSynchronize", driver.stream_synchronize);
  required("cuThreadExchangeStreamCaptureMode", driver.exchange_capture_mode);
  required("cuMemAlloc_v2", driver.memory_allocate);
  required("cuMemFree_v2", driver.memory_free);
  required("cuMemcpyHtoD_v2", driver.copy_to_device);
  required("cuMemcpyDtoH_v2", driver.copy_to_host);
  required("cuMemcpyHtoDAsync_v2", driver.copy_to_device_async);
  required("cuModuleGetGlobal_v2", driver.module_get_global);

  const bool libraries = points.optional("cuLibraryLoadData", driver.library_load) &&
                         points.optional("cuLibraryUnload", driver.library_unload) &&
                         points.optional("cuLibraryGetKernel", driver.library_get_kernel) &&
                         points.optional("cuLibraryGetGlobal", driver.library_get_global) &&
                         points.optional("cuKernelGetFunction", driver.kernel_get_function) &&
                         points.optional("cuKernelSetAttribute", driver.kernel_set_attribute);
  if (!libraries) driver.kernel_set_attribute = nullptr;
  points.optional("cuTensorMapEncodeTiled", driver.tensor_map_encode);
  points.optional("cuLaunchKernelEx", driver.launch_kernel_ex);
  return points.missing();
}

}  // namespace

std::string Driver::words(Status status) const {
  const char* name = nullptr;
  const char* text = nullptr;
  if (get_error_name(status, &name) != kSuccess || name == nullptr) {
    return fmt::format("CUDA error {}", status);
  }
  if (get_error_string(status, &text) != kSuccess || text == nullptr) return name;
  return fmt::format("{}: {}", name, text);
}

Result<std::shared_ptr<const Driver>> Driver::open(const std::string& library) {
  auto opened = open_driver_library(
      kSearch, library,
      "no CUDA driver: libcuda.so.1 cannot be opened; install the NVIDIA driver, or use the device "
      "\"host\"");
  if (!opened) return opened.error();
  auto driver = std::make_shared<Driver>();
  if (const char* missing = fill(*opened, *driver); missing != nullptr) {
    return Error{ErrorCode::kDriver,
                 fmt::format("the CUDA driver {} lacks {}; a driver of CUDA 11.4 or later has it",
                             opened->path, missing),
                 {}};
  }
  return std::shared_ptr<const Driver>(std::move(driver));
}

Error driver_error(const Driver& driver, Status status, std::string_view doing) {
  return driver_call_error(status, doing, driver.words(status));
}

std::string driver_release(std::string_view proc_text) {
  // "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Wed ...": the first word of the
  // first line that is digits and dots with at least one dot.
  const std::string_view line = proc_text.substr(0, proc_text.find('\n'));
  for (std::size_t at = 0; at < line.size();) {
    if (line[at] == ' ' || line[at] == '\t') {
      ++at;
      continue;
    }
    const std::size_t end = std::min(line.find_first_of(" \t", at), line.size());
    const std::string_view word = line.substr(at, end - at);
    const bool numeric = word.find_first_not_of("0123456789.") == std::string_view::npos;
    if (numeric && word.find('.') != std::string_view::npos) return std::string(word);
    at = end;
  }
  return {};
}

}  // namespace broach::runtime::cuda
