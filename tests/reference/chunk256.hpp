#pragma once

#include <cstdint>
#include <vector>

#include "tools/contract/window_rows/problem.hpp"

namespace broach::test {

/// Faults that the reference can be asked to make, to show that a checker sees them.
enum class ReferenceFault : std::uint8_t {
  kNone,
  kWindowEarly,    ///< The window starts one key early.
  kMergeUnscaled,  ///< The merge leaves exp(m_c - M) out.
  kTruncatedSums,  ///< The merge rounds toward zero, at 16 bits.
  kRatioOffByOne,  ///< Query heads look at the next KV head from their last one on.
  kNoScale,        ///< The scale is left out.
  kLostRun,        ///< The last run of each chunk is not added.
};

/// `chunk256` decode in plain C++, one row at a time, as the arithmetic is written down.
///
/// Shapes:  the result is laid out by the problem's output strides; padding is 0.
/// Source:  docs/families/window_rows.md, "chunk256". `exponential` takes arguments <= 0.
std::vector<std::uint16_t> chunk256_reference(const contract::window_rows::Problem& problem,
                                              float (*exponential)(float),
                                              ReferenceFault fault = ReferenceFault::kNone);

/// exp by the C library in double, rounded once: within one ulp of any portable exponential's goal.
float library_exponential(float x);

}  // namespace broach::test
