#include <fmt/core.h>

#include <charconv>
#include <optional>

#include "runtime/cuda/cuda_device.hpp"
#include "runtime/device.hpp"
#include "runtime/hip/hip_device.hpp"
#include "runtime/host/host_device.hpp"

namespace broach::runtime {
namespace {

/// The N of "cuda:N", 0 for "cuda"; absent for any other name.
std::optional<int> ordinal_of(std::string_view name, std::string_view kind) {
  if (!name.starts_with(kind)) return std::nullopt;
  name.remove_prefix(kind.size());
  if (name.empty()) return 0;
  if (name.size() < 2 || name[0] != ':' || name[1] < '0' || name[1] > '9') return std::nullopt;
  int ordinal = 0;
  const char* end = name.data() + name.size();
  const auto parsed = std::from_chars(name.data() + 1, end, ordinal);
  if (parsed.ec != std::errc{} || parsed.ptr != end) return std::nullopt;
  return ordinal;
}

}  // namespace

Result<std::shared_ptr<Device>> open_device(std::string_view name) {
  if (name == "host" || name.starts_with("host:") || name.starts_with("host-")) {
    auto target = specializer::parse_target(name);
    if (!target) return target.error();
    return open_host_device(*target);
  }
  if (const auto ordinal = ordinal_of(name, "cuda")) return cuda::open_cuda_device(*ordinal);
  if (const auto ordinal = ordinal_of(name, "hip")) return hip::open_hip_device(*ordinal);
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("unknown device \"{}\"; known are \"auto\", \"host\", "
                           "\"host:step=k8\", \"cuda\", \"cuda:N\", \"hip\" and \"hip:N\"",
                           name),
               {}};
}

}  // namespace broach::runtime
