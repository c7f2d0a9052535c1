#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "broach/result.hpp"
#include "runtime/device.hpp"

namespace broach::runtime {

// What a GPU's functions and modules say and do alike, whichever driver is behind them.

/// "launching F with grid 1x2x3, 128 threads and 0 bytes of dynamic shared memory on NVIDIA H200"
std::string words_of_launch(std::string_view function, const LaunchConfig& config,
                            std::string_view chip);

/// The parameters as a driver takes them: `one` is room for a pointer to the struct, where there is
/// one. Null for a function without parameters.
inline void** driver_params(const LaunchConfig& config, void*& one) noexcept {
  if (config.params == nullptr) return const_cast<void**>(config.arguments.data());
  one = const_cast<void*>(config.params);
  return &one;
}

/// kNotFound naming a variable.
Error no_symbol(std::string_view name);

/// Errors:  kInvalidArgument with both sizes when the variable is smaller than `bytes`.
Result<void> check_symbol_bytes(std::string_view name, const Symbol& symbol, std::size_t bytes);

/// The function of that name among a module's.
///
/// Errors:  kNotFound naming it.
template <class Kind>
Result<const Function*> function_named(const std::vector<std::unique_ptr<Kind>>& functions,
                                       std::string_view name) {
  for (const auto& function : functions) {
    if (function->name() == name) return static_cast<const Function*>(function.get());
  }
  return Error{ErrorCode::kNotFound,
               "function " + std::string(name) + " was not named when the binary was loaded",
               {}};
}

/// What a live function reports. `read(attribute, value)` asks the driver and returns its status;
/// `failed(status, doing)` puts one that is not 0 into words.
template <class Attribute, class Read, class Failed>
Result<LaunchLimits> live_limits_of(
    const std::string& function,
    std::initializer_list<std::pair<Attribute, std::optional<std::uint32_t> LaunchLimits::*>>
        attributes,
    Read read, Failed failed) {
  LaunchLimits limits;
  limits.function = function;
  limits.source = "device";
  for (const auto& [attribute, field] : attributes) {
    int value = 0;
    if (const int status = read(attribute, &value); status != 0) {
      return failed(status, "reading attribute " + std::to_string(static_cast<int>(attribute)) +
                                " of " + function);
    }
    limits.*field = static_cast<std::uint32_t>(value);
  }
  return limits;
}

}  // namespace broach::runtime
