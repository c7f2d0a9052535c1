#pragma once

#include <cstdint>
#include <vector>

#include "specializer/target.hpp"
#include "tools/contract/window_rows/problem.hpp"

namespace broach::test {

/// `tile64` or `mma32`, whichever the problem's shape names, in plain C++: one row at a time, as
/// the arithmetic is written down, decode and prefill alike.
///
/// Finite outputs only: a row with a NaN or an infinity in its inputs is not served.
///
/// Shapes:  the result is laid out by the problem's output strides; padding is 0.
/// Source:  docs/families/window_rows_tile64.md and docs/families/window_rows_mma32.md, by the
/// references beside the
///          kernels' own tests (tests/kernel_src/tile64_reference.hpp, mma32_reference.hpp).
std::vector<std::uint16_t> mma_steps_reference(
    const contract::window_rows::Problem& problem,
    specializer::MmaStep step = specializer::MmaStep::kOneK16);

}  // namespace broach::test
