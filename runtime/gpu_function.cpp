#include "runtime/gpu_function.hpp"

#include <fmt/core.h>

namespace broach::runtime {

Result<TensorMap> Function::tensor_map(const TensorLayout&) const {
  return Error{ErrorCode::kUnsupported, "this device has no tensor copy engine", {}};
}

std::string words_of_launch(std::string_view function, const LaunchConfig& config,
                            std::string_view chip) {
  return fmt::format(
      "launching {} with grid {}x{}x{}, {} threads and {} bytes of dynamic shared memory on {}",
      function, config.grid[0], config.grid[1], config.grid[2], config.block_threads,
      config.dynamic_shared_bytes, chip);
}

}  // namespace broach::runtime
