#pragma once

#include <string_view>

#include "specializer/render.hpp"

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

/// A prompt of 64-row blocks in `arith`, "tile64": kernel_src/window_rows/<arith>_prompt.cuh for
/// `geometry`, with every fault that such a prompt can be planted with.
Rendered render_prompt(const WindowRowsShape& shape, int ratio, const Variant& variant,
                       std::string_view arith, int tile_keys, const PromptGeometry& geometry);

}  // namespace broach::specializer::window_rows
