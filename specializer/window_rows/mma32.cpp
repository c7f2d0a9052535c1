#include "kernel_src/window_rows/geometry.h"
#include "specializer/window_rows/prefill.hpp"
#include "specializer/window_rows/render.hpp"

namespace broach::specializer {

Rendered render_window_rows_mma32(const WindowRowsShape& shape, const Target& target,
                                  const Variant& variant) {
  using namespace broach::window_rows;
  const bool generic = variant.generic == Switch::kOn;
  const auto head_dim = static_cast<int>(shape.head_dim);
  const window_rows::PrefillGeometry geometry =
      window_rows::prefill_geometry(head_dim, kMma32Keys, mma32_stage_dims(head_dim), generic,
                                    static_cast<int>(target.max_shared_bytes));
  // A generic kernel has no use for a ratio: it reads its own from its parameters.
  const int ratio = generic ? 0 : static_cast<int>(shape.gqa_ratio);
  return window_rows::render_prefill(shape, ratio, variant, "mma32", kMma32Keys, geometry);
}

}  // namespace broach::specializer
