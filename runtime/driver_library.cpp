#include "runtime/driver_library.hpp"

#include <fmt/core.h>

#include <vector>

namespace broach::runtime {
namespace {

constexpr int kOutOfMemoryStatus = 2;
constexpr int kNotInitialized = 3;

}  // namespace

Result<DriverLibrary> open_driver_library(std::span<const char* const> candidates,
                                          const std::string& only, std::string_view missing) {
  std::vector<const char*> paths(candidates.begin(), candidates.end());
  if (!only.empty()) paths = {only.c_str()};
  std::string tried;
  for (const char* path : paths) {
    if (void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL); handle != nullptr) {
      return DriverLibrary{handle, path};
    }
    const char* why = dlerror();
    tried += fmt::format("{}: {}\n", path, why == nullptr ? "cannot be opened" : why);
  }
  return Error{ErrorCode::kNotFound, std::string(missing), tried};
}

Error driver_call_error(int status, std::string_view doing, const std::string& words) {
  Error error{ErrorCode::kDriver, fmt::format("{}: {}", doing, words), {}};
  if (status == kOutOfMemoryStatus) error.code = ErrorCode::kOutOfMemory;
  if (status == kNotInitialized) {
    error.message +=
        "; was this process forked after its parent opened the device? Create the Runtime after "
        "the fork";
  }
  return error;
}

}  // namespace broach::runtime
