#include "specializer/window_rows/prompt_geometry.hpp"

#include "kernel_src/window_rows/layout.h"

namespace broach::specializer::window_rows {

// Four stages while they fit, then fewer, then half as wide: what is left beside 64 rows of queries
// is short at head_dim 512 where a block gets 99 KiB.
PromptGeometry prompt_geometry(int head_dim, int tile_keys, int piece, bool generic,
                               int shared_limit) {
  using namespace broach::window_rows;
  PromptGeometry geometry{piece, prompt_warps(head_dim, generic), 4, 0};
  const auto bytes = [&] {
    return prompt_shared_bytes(head_dim, tile_keys, geometry.piece, geometry.stages);
  };
  while (geometry.stages > 2 && bytes() > shared_limit) --geometry.stages;
  if (bytes() > shared_limit && geometry.piece % 32 == 0) {
    geometry.piece /= 2;
    geometry.stages = 4;
    while (geometry.stages > 2 && bytes() > shared_limit) --geometry.stages;
  }
  geometry.shared_bytes = bytes();
  return geometry;
}

}  // namespace broach::specializer::window_rows
