#include "kernel_src/window_rows/geometry.h"
#include "specializer/window_rows/kernel_source.hpp"
#include "specializer/window_rows/render.hpp"

namespace broach::specializer {

Rendered render_window_rows_chunk256(const WindowRowsShape& shape, const Target& /*target*/,
                                     const Variant& variant) {
  using namespace broach::window_rows;
  // A generic kernel has no use for a ratio: it reads its own from its parameters.
  const int ratio = variant.generic == Switch::kOn ? 0 : static_cast<int>(shape.gqa_ratio);
  return {
      window_rows::KernelSource(shape, ratio, variant).finish("window_rows/chunk256_decode.cuh"),
      {{"broach_window_rows_chunk256_partial", kChunk256PartialThreads, 0},
       {"broach_window_rows_chunk256_combine", kChunk256CombineThreads, 0}}};
}

}  // namespace broach::specializer
