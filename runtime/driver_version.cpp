#include "runtime/driver_version.hpp"

#include <fmt/core.h>

#include <charconv>
#include <optional>
#include <utility>

namespace broach::runtime {
namespace {

/// The version behind "CUDA " in text, as {major, minor}.
std::optional<std::pair<int, int>> cuda_version(std::string_view text) {
  constexpr std::string_view kName = "CUDA ";
  const std::size_t at = text.find(kName);
  if (at == std::string_view::npos) return std::nullopt;
  const char* end = text.data() + text.size();
  std::pair<int, int> version{0, 0};
  const auto major = std::from_chars(text.data() + at + kName.size(), end, version.first);
  if (major.ec != std::errc{} || major.ptr == end || *major.ptr != '.') return std::nullopt;
  const auto minor = std::from_chars(major.ptr + 1, end, version.second);
  if (minor.ec != std::errc{}) return std::nullopt;
  return version;
}

}  // namespace

Result<void> check_least_driver(std::string_view driver, std::string_view least_driver) {
  const auto has = cuda_version(driver);
  const auto needs = cuda_version(least_driver);
  if (!has || !needs || *has >= *needs) return {};
  return Error{ErrorCode::kDriver,
               fmt::format("the binary needs a driver of CUDA {}.{} or later; this driver is {}; "
                           "update it, or point BROACH_NVRTC at an older NVRTC",
                           needs->first, needs->second, driver),
               {}};
}

}  // namespace broach::runtime
