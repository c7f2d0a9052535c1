#pragma once

namespace broach::specializer::window_rows {

/// The constants of a prompt kernel that follow from the shape and the target's shared memory.
struct PromptGeometry {
  int piece;  ///< Dims of a piece.
  int warps;
  int stages;
  int shared_bytes;
};

/// Pieces of `piece` dims, or fewer where shared memory is short.
PromptGeometry prompt_geometry(int head_dim, int tile_keys, int piece, bool generic,
                               int shared_limit);

}  // namespace broach::specializer::window_rows
