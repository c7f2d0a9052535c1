#pragma once

#include <cstdint>

namespace broach::runtime::sage_exact {

/// What of a device decides the order of the K mean's sums.
struct MeanDevice {
  std::uint32_t multiprocessors = 132;
  std::uint32_t threads_per_multiprocessor = 2048;
};

/// How the sum over tokens is split; the reference's framework decides so.
struct MeanGeometry {
  std::uint32_t lanes = 1;   ///< 4: tokens are split over 4 groups of threads of a block.
  std::uint32_t blocks = 1;  ///< A head.
  std::uint32_t step = 1;    ///< Tokens between a thread's consecutive ones.
  float factor = 0;          ///< What the total is multiplied by.
};

/// Shapes:  tokens and heads at least 1.
MeanGeometry mean_geometry(std::uint32_t tokens, std::uint32_t heads, const MeanDevice& device);

}  // namespace broach::runtime::sage_exact
