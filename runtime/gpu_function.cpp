#include "runtime/gpu_function.hpp"

#include <fmt/core.h>

namespace broach::runtime {

Result<TensorMap> Function::tensor_map(const TensorLayout&) const {
  return Error{ErrorCode::kUnsupported, "this device has no tensor copy engine", {}};
}

Result<Symbol> Module::symbol(std::string_view name) {
  return Error{
      ErrorCode::kUnsupported, fmt::format("this device finds no variable, such as {}", name), {}};
}

Result<void> Module::set_symbol(std::string_view name, std::span<const std::byte>, Stream) {
  return symbol(name).error();
}

Error no_symbol(std::string_view name) {
  return Error{ErrorCode::kNotFound,
               fmt::format("the binary has no variable {}; a compiler keeps those at global scope "
                           "that a kernel uses",
                           name),
               {}};
}

Result<void> check_symbol_bytes(std::string_view name, const Symbol& symbol, std::size_t bytes) {
  if (bytes <= symbol.bytes) return {};
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format("the variable {} has {} bytes; {} were given", name, symbol.bytes, bytes),
      {}};
}

namespace {

std::string words_of(const std::uint32_t (&dims)[3]) {
  return fmt::format("{}x{}x{}", dims[0], dims[1], dims[2]);
}

}  // namespace

std::string words_of_launch(std::string_view function, const LaunchConfig& config,
                            std::string_view chip) {
  const bool flat = config.block[1] == 1 && config.block[2] == 1;
  std::string words =
      fmt::format("launching {} with grid {}, {} threads", function, words_of(config.grid),
                  flat ? std::to_string(config.block[0]) : words_of(config.block));
  if (config.cluster[0] != 0) {
    words += fmt::format(", clusters of {} blocks", words_of(config.cluster));
  }
  if (config.grid_sync == GridSync::kCooperative) words += ", grid-wide waits";
  if (config.overlap == Overlap::kProgrammatic) words += ", overlap with the launch before";
  return words + fmt::format(" and {} bytes of dynamic shared memory on {}",
                             config.dynamic_shared_bytes, chip);
}

}  // namespace broach::runtime
