#pragma once

#include <span>
#include <string_view>

#include "broach/types.hpp"

namespace broach::contract {

/// A flaw of compiled kernels that is known, has a reason, and changes no result.
struct Finding {
  std::string_view function;  ///< The kernel function it shows in.
  std::string_view targets;   ///< What the targets' names begin with.
  std::string_view what;
  std::string_view why;
  bool (*shows)(const WindowRowsShape& shape, Switch generic);
};

/// Every known finding.
std::span<const Finding> findings();

/// The finding that a spill belongs to, or null for one that nobody has looked at.
const Finding* known_spill(std::string_view target, std::string_view function,
                           const WindowRowsShape& shape, Switch generic);

}  // namespace broach::contract
