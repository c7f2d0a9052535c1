#include <cstdint>
#include <string_view>
#include <utility>

#include "kernel_src/window_rows/layout.h"
#include "specializer/render.hpp"
#include "specializer/window_rows/kernel_source.hpp"
#include "specializer/window_rows/prompt_geometry.hpp"

namespace broach::specializer {
namespace {

constexpr std::string_view kControls[] = {
    "window_early", "fold_reversed", "fold_unscaled",   "weight_rounded",    "low_half_dropped",
    "hi_ignored",   "sink_left_out", "page_off_by_one", "whole_block_rerun",
};

}  // namespace

Rendered render_window_rows_mma32(const WindowRowsShape& shape, const Target& target,
                                  const Variant& variant) {
  using namespace broach::window_rows;
  const bool generic = variant.generic == Switch::kOn;
  const auto head_dim = static_cast<int>(shape.head_dim);
  const window_rows::PromptGeometry geometry =
      window_rows::prompt_geometry(head_dim, kMma32Keys, mma32_piece_dims(head_dim), generic,
                                   static_cast<int>(target.max_shared_bytes));
  // A generic kernel has no use for a ratio: it reads its own from its parameters.
  window_rows::KernelSource source(shape, generic ? 0 : static_cast<int>(shape.gqa_ratio), variant,
                                   kControls);
  source.constant("int", "kTileKeys", kMma32Keys);
  source.constant("int", "kPieceDims", geometry.piece);
  source.constant("int", "kStages", geometry.stages);
  source.constant("int", "kPromptWarps", geometry.warps);
  source.constant("int", "kPromptSharedBytes", geometry.shared_bytes);
  return {std::move(source).finish("window_rows/mma32_prompt.cuh"),
          {{"broach_window_rows_mma32_prompt", static_cast<std::uint32_t>(geometry.warps) * 32,
            static_cast<std::uint32_t>(geometry.shared_bytes)}}};
}

}  // namespace broach::specializer
