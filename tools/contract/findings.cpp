#include "tools/contract/findings.hpp"

#include <algorithm>

namespace broach::contract {

std::span<const Finding> findings() { return {}; }

const Finding* known_spill(std::string_view target, std::string_view function,
                           const WindowRowsShape& shape, Switch generic) {
  const std::span<const Finding> all = findings();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Finding& finding) {
    return finding.function == function && target.starts_with(finding.targets) &&
           finding.shows(shape, generic);
  });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace broach::contract
