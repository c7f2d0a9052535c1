#include "specializer/sparse_rows/geometry.hpp"

#include "kernel_src/sparse_rows/layout.h"

namespace broach::specializer::sparse_rows {
namespace {

using namespace broach::sparse_rows;

constexpr int kMostPieceDims = 128;
constexpr int kLeastPieceDims = 32;
// A piece in use, one that arrives, and one that has been asked for.
constexpr int kEnoughStages = 3;

}  // namespace

// As many rows a tile as fit, then the widest pieces that leave enough stages: K and V are read
// once a tile, and a piece's barrier is paid once.
std::optional<MmaGeometry> mma_geometry(const SparseRowsShape& shape, const Target& target,
                                        int gqa_ratio) {
  const auto head_dim = static_cast<int>(shape.head_dim);
  const auto p_parts = static_cast<int>(shape.p_parts);
  const int q_parts = shape.q_dtype == QueryDtype::kF32 ? 3 : 1;
  const auto limit = static_cast<int>(target.max_shared_bytes);
  const int threads = target.vendor == Vendor::kAmd ? kMmaThreadsAmd : kMmaThreadsMmaSync;
  const int unit_lanes = target.mma_step == MmaStep::kMfma ? 64 : 32;
  for (int tile_rows = 4; tile_rows >= 1; tile_rows /= 2) {
    std::optional<MmaGeometry> narrow;
    for (int piece = head_dim < kMostPieceDims ? head_dim : kMostPieceDims;
         piece >= kLeastPieceDims || piece == head_dim; piece -= 16) {
      if (head_dim % piece != 0 || piece % 16 != 0) continue;
      if (thread_outputs(head_dim, column_blocks(tile_rows, gqa_ratio), piece, threads,
                         unit_lanes) > kMostThreadOutputs) {
        continue;
      }
      const auto bytes = [&](int stages) {
        return mma_shared_bytes(head_dim, tile_rows, gqa_ratio, q_parts, p_parts, piece, stages);
      };
      int stages = 2 * (head_dim / piece) + 1;
      if (stages < kEnoughStages) stages = kEnoughStages;
      while (stages > 2 && bytes(stages) > limit) --stages;
      if (bytes(stages) > limit) continue;
      const MmaGeometry found{threads, tile_rows, piece, stages, bytes(stages)};
      if (stages >= kEnoughStages) return found;
      if (!narrow) narrow = found;
    }
    if (narrow) return narrow;
  }
  return std::nullopt;
}

}  // namespace broach::specializer::sparse_rows
