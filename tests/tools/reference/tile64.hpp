#pragma once

#include <cstdint>
#include <vector>

#include "tools/contract/problem.hpp"

namespace broach::test {

/// `tile64` in plain C++, one row at a time, as the arithmetic is written down: decode and prompt
/// alike, on the k16 step of sm_90 and the host's model.
///
/// Finite outputs only: a row with a NaN or an infinity in its inputs is not served.
///
/// Shapes:  the result is laid out by the problem's output strides; padding is 0.
/// Source:  docs/numerics_tile64.md.
std::vector<std::uint16_t> tile64_reference(const contract::DecodeProblem& problem);

}  // namespace broach::test
