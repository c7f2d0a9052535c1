#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace broach::specializer {

/// What ptxas's verbose report says of one function.
///
/// Units:   bytes a thread.
struct PtxasProperties {
  std::uint32_t stack_bytes = 0;
  std::uint32_t spill_store_bytes = 0;
  std::uint32_t spill_load_bytes = 0;
};

/// Finds the report of a function in a log, or nothing.
std::optional<PtxasProperties> ptxas_properties(std::string_view log, std::string_view function);

}  // namespace broach::specializer
