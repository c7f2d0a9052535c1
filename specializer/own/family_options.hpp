#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "broach/result.hpp"
#include "broach/types.hpp"
#include "specializer/target.hpp"

namespace broach::specializer::own {

enum class CxxStandard : std::uint8_t { kCxx17, kCxx20 };

/// What a family may ask of one vendor's compiler. What is left out is as for the library's own
/// families: no contraction, no flushing of denormals, exact division and square root, C++20.
struct FamilyOptions {
  std::optional<Switch> fmad;  ///< Whether a product and a sum may become one operation.
  /// Approximate division, square root and functions, contraction and flushing at once.
  std::optional<Switch> fast_math;
  std::optional<Switch> ftz;        ///< Whether denormals become zero.
  std::optional<Switch> line_info;  ///< Source lines in the binary, for profilers and debuggers.
  std::optional<std::uint32_t> max_registers;  ///< A thread's at most.
  std::optional<CxxStandard> standard;

  friend bool operator==(const FamilyOptions&, const FamilyOptions&) = default;
};

/// A value as a family file has it.
using OptionValue = std::variant<bool, std::uint64_t, std::string>;

/// Sets the option that a family file calls `name`: fmad, fast_math, ftz, line_info (true or
/// false), max_registers (16 to 255), std ("c++17", "c++20").
///
/// Errors:  kInvalidArgument with the option, its value, and what would work; kUnsupported where
///          the vendor's compiler has no such option.
Result<void> set_option(FamilyOptions& options, Vendor vendor, std::string_view name,
                        const OptionValue& value);

/// The compiler's options for a target in the order they are passed and hashed. None is a path, and
/// each compiler is told to search no directory of its own.
///
/// Errors:  kInvalidArgument where fast_math is on and what it turns on is off; kUnsupported as
///          set_option.
/// Source:  docs/cache_key.md, "Options".
Result<std::vector<std::string>> compiler_options(const Target& target,
                                                  const FamilyOptions& options);

}  // namespace broach::specializer::own
