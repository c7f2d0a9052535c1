#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "broach/result.hpp"
#include "broach/types.hpp"
#include "specializer/limits/elf_image.hpp"

namespace broach::specializer {

/// The name of the variable that a function's stated geometry lies in.
std::string geometry_name(std::string_view function);

/// Puts what a kernel states of its launch into its limits.
///
/// Errors:  a sentence without the reader's name, where the bytes are no such record, or state a
///          geometry that no launch has or another one than the code was compiled for.
/// Source:  kernel_src/broach/launch_geometry.h.
std::optional<std::string> take_geometry(std::span<const std::byte> bytes, LaunchLimits& limits);

/// The same out of an object whose symbols are addresses: a code object's or a host object's.
/// Nothing is stated where there is no such symbol.
std::optional<std::string> take_geometry_at_address(const ElfImage& image, LaunchLimits& limits);

}  // namespace broach::specializer
