#pragma once

#include <cstdint>
#include <vector>

#include "tools/contract/problem.hpp"

namespace broach::test {

/// `mma32` in plain C++, one row at a time, as the arithmetic is written down, on the k16 step of
/// sm_90 and the host's model.
///
/// Finite outputs only: a row with a NaN or an infinity in its inputs is not served.
///
/// Shapes:  the result is laid out by the problem's output strides; padding is 0.
/// Source:  docs/numerics_mma32.md, by tests/kernel_src/mma32_reference.hpp.
std::vector<std::uint16_t> mma32_reference(const contract::DecodeProblem& problem);

}  // namespace broach::test
