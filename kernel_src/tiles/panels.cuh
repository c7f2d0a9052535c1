#pragma once

// Panels: rows of 64 16-bit elements (128 bytes) in shared memory, as a warpgroup's MMA steps
// read them. The 16-byte units of a row are exchanged within 8 rows, which keeps rows and columns
// free of bank conflicts. A panel starts 1,024-byte aligned.

#include "common/platform.cuh"

namespace broach {

constexpr int kPanelColumns = 64;
constexpr int kPanelAlignment = 1024;

/// Where element (row, column) of a panel lies, in elements from its start.
BROACH_DEVICE constexpr int panel_at(int row, int column) {
  return row * kPanelColumns + ((column / 8 ^ row % 8) * 8 | column % 8);
}

}  // namespace broach
