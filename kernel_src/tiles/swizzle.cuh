#pragma once

// Shared memory in 128-byte swizzle, as WGMMA and tensor copies read and write it: rows of 64
// 16-bit elements, whose 16-byte units are permuted within 8 rows. Neither rows nor columns have
// bank conflicts then. A tile of any height is such rows one behind another, 1,024-byte aligned; a
// wider matrix is several tiles of 64 columns.

#include "common/platform.cuh"

namespace broach {

constexpr int kSwizzleColumns = 64;
constexpr int kSwizzleAlignment = 1024;

/// Where element (row, column) of a swizzled tile lies, in elements from its start.
BROACH_DEVICE constexpr int swizzled_at(int row, int column) {
  return row * kSwizzleColumns + ((column / 8 ^ row % 8) * 8 | column % 8);
}

}  // namespace broach
