#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tools/contract/harness/range_report.hpp"
#include "tools/contract/sparse_rows/problem.hpp"

namespace broach::contract::sparse_rows {

/// One output in float64, and how far from it the kernel's arithmetic may be.
struct Bounded {
  double exact = 0;
  double most = 0;
};

/// The outputs of one (row, query head).
///
/// Shapes:  [D].
/// Source:  docs/families/sparse_rows.md, "Ranges", derives every term.
std::vector<Bounded> bounded_outputs(const Problem& problem, std::size_t row, std::int32_t head);

/// Judges a launch's outputs, in the order that Kernel::run gives them.
RangeReport judge(const Problem& problem, std::span<const std::byte> outputs,
                  std::uint32_t threads);

/// Element `i` of outputs, as float64.
double output_at(const Problem& problem, std::span<const std::byte> outputs, std::size_t i);

}  // namespace broach::contract::sparse_rows
