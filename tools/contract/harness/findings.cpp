#include "tools/contract/harness/findings.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace broach::contract {

Spill spill_of(const LaunchLimits& limits) {
  return {limits.spill_bytes.value_or(0), limits.vgpr_spills.value_or(0),
          limits.sgpr_spills.value_or(0)};
}

std::string words_of(const Spill& spill) {
  std::string words;
  for (const auto& [amount, unit] :
       {std::pair{spill.bytes, "bytes"}, std::pair{spill.vector_registers, "vector registers"},
        std::pair{spill.scalar_registers, "scalar registers"}}) {
    if (amount > 0) words += fmt::format("{}{} {}", words.empty() ? "" : ", ", amount, unit);
  }
  return words;
}

const Finding* known_spill(std::span<const Finding> findings, std::string_view target,
                           std::string_view function, const Spill& spill) {
  const auto found = std::find_if(findings.begin(), findings.end(), [&](const Finding& finding) {
    return finding.function == function && target.starts_with(finding.targets) &&
           spill.bytes <= finding.most.bytes &&
           spill.vector_registers <= finding.most.vector_registers &&
           spill.scalar_registers <= finding.most.scalar_registers;
  });
  return found == findings.end() ? nullptr : &*found;
}

}  // namespace broach::contract
