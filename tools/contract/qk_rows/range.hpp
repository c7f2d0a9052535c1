#pragma once

#include <cstdint>
#include <vector>

#include "tools/contract/harness/range_report.hpp"
#include "tools/contract/qk_rows/problem.hpp"

namespace broach::contract::qk_rows {

/// Judges outputs [rows][heads of a row][D]: each against float64's range at the rounding points.
///
/// Source:  docs/families/qk_rows.md, "Ranges".
RangeReport judge(const Problem& problem, const std::vector<std::uint16_t>& outputs,
                  std::uint32_t threads);

}  // namespace broach::contract::qk_rows
