#include "runtime/hip/driver.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "runtime/driver_library.hpp"

namespace broach::runtime::hip {
namespace {

constexpr std::array<const char*, 4> kSearch{"libamdhip64.so.7", "libamdhip64.so.6",
                                             "libamdhip64.so.5", "/opt/rocm/lib/libamdhip64.so"};

/// Fills the table; the name of the first entry point that is missing, or null.
const char* fill(const DriverLibrary& library, Driver& driver) {
  EntryPoints points(library);
  const auto required = [&](const char* name, auto& entry) { points.required(name, entry); };
  required("hipInit", driver.init);
  required("hipDriverGetVersion", driver.driver_get_version);
  required("hipGetErrorName", driver.get_error_name);
  required("hipGetErrorString", driver.get_error_string);
  required("hipGetDeviceCount", driver.get_device_count);
  required("hipDeviceGetName", driver.device_get_name);
  required("hipGetDeviceProperties", driver.get_device_properties);
  required("hipGetDevice", driver.get_device);
  required("hipSetDevice", driver.set_device);
  required("hipModuleLoadData", driver.module_load);
  required("hipModuleUnload", driver.module_unload);
  required("hipModuleGetFunction", driver.module_get_function);
  required("hipFuncGetAttribute", driver.function_get_attribute);
  required("hipModuleLaunchKernel", driver.launch_kernel);
  required("hipStreamIsCapturing", driver.stream_is_capturing);
  required("hipStreamSynchronize", driver.stream_synchronize);
  required("hipMalloc", driver.memory_allocate);
  required("hipFree", driver.memory_free);
  required("hipMemcpyHtoD", driver.copy_to_device);
  required("hipMemcpyDtoH", driver.copy_to_host);
  required("hipMemcpyHtoDAsync", driver.copy_to_device_async);
  required("hipModuleGetGlobal", driver.module_get_global);
  points.optional("hipModuleLaunchCooperativeKernel", driver.launch_cooperative);
  return points.missing();
}

bool is_arch_char(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == ':' || c == '+' || c == '-';
}

}  // namespace

std::string Driver::words(Status status) const {
  const char* name = get_error_name(status);
  const char* text = get_error_string(status);
  return fmt::format("{}: {}", name == nullptr ? "HIP error" : name,
                     text == nullptr ? std::to_string(status) : text);
}

Result<std::shared_ptr<const Driver>> Driver::open(const std::string& library) {
  auto opened = open_driver_library(
      kSearch, library,
      "no HIP run time: libamdhip64 cannot be opened; install ROCm, or use the device \"host\"");
  if (!opened) return opened.error();
  auto driver = std::make_shared<Driver>();
  if (const char* missing = fill(*opened, *driver); missing != nullptr) {
    return Error{ErrorCode::kDriver,
                 fmt::format("the HIP run time {} lacks {}; ROCm 5.0 and later have it",
                             opened->path, missing),
                 {}};
  }
  return std::shared_ptr<const Driver>(std::move(driver));
}

Error driver_error(const Driver& driver, Status status, std::string_view doing) {
  return driver_call_error(status, doing, driver.words(status));
}

std::string arch_in(std::span<const char> properties) {
  constexpr std::string_view kStart = "gfx";
  const std::string_view bytes(properties.data(), properties.size());
  // gcnArchName comes after the product's name, which may hold the same letters.
  for (std::size_t at = bytes.rfind(kStart); at != std::string_view::npos && at > 0;
       at = bytes.rfind(kStart, at - 1)) {
    const auto* const end = std::find_if_not(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                                             bytes.end(), is_arch_char);
    const std::string_view word(bytes.data() + at,
                                static_cast<std::size_t>(end - bytes.begin()) - at);
    const bool whole = bytes[at - 1] == '\0' && end != bytes.end() && *end == '\0';
    if (whole && word.size() > kStart.size()) return std::string(word);
  }
  return {};
}

}  // namespace broach::runtime::hip
