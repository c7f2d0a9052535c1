#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "broach/kernel.hpp"
#include "broach/result.hpp"
#include "runtime/operator.hpp"

namespace broach::runtime {

/// The functions of an engine's own kernel.
///
/// Threads: any; it does not change.
/// Owns:    nothing of the module, which outlives it.
class OwnLaunch final : public Launch {
 public:
  /// A MakeLaunch.
  static Result<std::unique_ptr<const Launch>> make(const LaunchParts& parts);

  /// Errors:  those of Kernel::launch.
  Result<void> launch(std::string_view function, const KernelLaunch& launch,
                      std::span<const KernelArgument> arguments, Stream stream) const;

  Module& module() const noexcept { return *module_; }

 private:
  struct OneFunction {
    std::string name;  ///< As the family calls it.
    const Function* function = nullptr;
    LaunchLimits limits;
    // What the family file says, where the binary says nothing.
    std::optional<std::array<std::uint32_t, 3>> block;
    std::optional<std::uint32_t> dynamic_shared;
    std::optional<std::array<std::uint32_t, 3>> cluster;
  };

  OwnLaunch(const specializer::Target& target, Module& module)
      : target_(&target), module_(&module) {}

  const OneFunction* find(std::string_view function) const noexcept;

  const specializer::Target* target_;
  Module* module_;
  std::vector<OneFunction> functions_;
};

}  // namespace broach::runtime
