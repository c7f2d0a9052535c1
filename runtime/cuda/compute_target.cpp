#include "runtime/cuda/compute_target.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace broach::runtime::cuda {

Result<std::string> compute_target(int major, int minor, std::span<const std::string_view> known) {
  const auto is_known = [&](const std::string& name) {
    return std::find(known.begin(), known.end(), name) != known.end();
  };
  std::string name = fmt::format("sm_{}{}a", major, minor);
  if (is_known(name)) return name;
  // Binaries without the `a` run on every later chip of the same major version.
  for (int least = minor; least >= 0; --least) {
    name = fmt::format("sm_{}{}", major, least);
    if (is_known(name)) return name;
  }
  std::string targets;
  for (const std::string_view target : known) {
    if (target.starts_with("sm_")) targets += fmt::format(" {}", target);
  }
  return Error{
      ErrorCode::kUnsupported,
      fmt::format("compute capability {}.{} has no target; known are{}", major, minor, targets),
      {}};
}

}  // namespace broach::runtime::cuda
