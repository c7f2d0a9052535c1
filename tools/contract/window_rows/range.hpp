#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "broach/result.hpp"
#include "tools/contract/harness/range_report.hpp"
#include "tools/contract/window_rows/problem.hpp"

namespace broach::contract::window_rows {

/// Judges a decode's outputs by float64 and by what the arithmetic's fp32 steps allow around it.
///
/// Shapes:  `out` as the problem's strides lay it out; padding is not looked at.
/// Errors:  kInvalidArgument when `out` is short; kUnsupported for an arithmetic without a bound.
/// Threads: uses `threads` of its own (0: one a core).
/// Source:  docs/families/window_rows_ranges.md.
Result<RangeReport> check_outputs(const Problem& problem, std::span<const std::uint16_t> out,
                                  std::uint32_t threads = 0);

/// The same for these rows alone.
Result<RangeReport> check_outputs(const Problem& problem, std::span<const std::uint16_t> out,
                                  std::uint32_t threads, const std::vector<std::int32_t>& rows);

}  // namespace broach::contract::window_rows
