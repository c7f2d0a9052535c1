#pragma once

#include <optional>

#include "broach/sparse_rows.hpp"
#include "specializer/target.hpp"

namespace broach::specializer::sparse_rows {

/// The constants of an mma kernel that follow from the shape and the target's shared memory. No bit
/// of a result depends on them.
struct MmaGeometry {
  int threads;     ///< Of a block.
  int tile_rows;   ///< Rows of a launch whose query heads share a tile: 4, 2 or 1.
  int piece_dims;  ///< Dims of a piece of K or V.
  int stages;      ///< Pieces in shared memory.
  int shared_bytes;
};

/// The geometry for query heads of `gqa_ratio` a KV head, or nothing where none fits.
std::optional<MmaGeometry> mma_geometry(const SparseRowsShape& shape, const Target& target,
                                        int gqa_ratio);

}  // namespace broach::specializer::sparse_rows
