#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "kernel_src/window_rows/geometry.h"
#include "specializer/window_rows/kernel_source.hpp"
#include "specializer/window_rows/prefill.hpp"
#include "specializer/window_rows/render.hpp"

namespace broach::specializer {
namespace {

using namespace broach::window_rows;

// A generic kernel serves every ratio: its heads are padded to the largest.
constexpr int kLargestRatio = 32;

/// The constants of a kernel that follow from the shape and the target's shared memory.
struct DecodeGeometry {
  int blocks;
  int warps;
  int stages;
  int shared_bytes;
};

// Stages for a whole tile of K and V and one more, so that a block's first tile is issued at once,
// and for no fewer bytes than at head_dim 256; fewer where shared memory is short. Two are the
// least that overlap copy and arithmetic.
DecodeGeometry decode_geometry(int head_dim, int ratio, bool p32, int shared_limit) {
  DecodeGeometry geometry{};
  geometry.blocks = head_blocks(ratio);
  geometry.warps = decode_warps(head_dim, geometry.blocks);
  geometry.stages = std::max(2 * head_dim, 512) / stage_dims(head_dim) + 1;
  while (geometry.stages > 2 &&
         decode_shared_bytes(head_dim, geometry.blocks, p32, geometry.stages) > shared_limit) {
    --geometry.stages;
  }
  geometry.shared_bytes = decode_shared_bytes(head_dim, geometry.blocks, p32, geometry.stages);
  return geometry;
}

// A generic kernel's run-time values need registers that a warpgroup's kernel lacks.
bool multiplies_by_warpgroup(int head_dim, const Target& target, const Variant& variant) {
  return target.arch == "sm_90a" && fits_warpgroups(head_dim) && variant.generic == Switch::kOff;
}

Rendered render_prefill(const WindowRowsShape& shape, int ratio, const Target& target,
                        const Variant& variant) {
  const auto head_dim = static_cast<int>(shape.head_dim);
  const auto shared_limit = static_cast<int>(target.max_shared_bytes);
  const auto geometry = [&] {
    if (!multiplies_by_warpgroup(head_dim, target, variant)) {
      return window_rows::prefill_geometry(head_dim, kTile64Keys, stage_dims(head_dim),
                                           variant.generic == Switch::kOn, shared_limit);
    }
    const auto pipeline = window_rows::pipeline_prefill_geometry(shape, shared_limit);
    return pipeline ? *pipeline : window_rows::warpgroup_prefill_geometry(head_dim, shared_limit);
  }();
  return window_rows::render_prefill(shape, ratio, variant, "tile64", kTile64Keys, geometry);
}

Rendered render_decode(const WindowRowsShape& shape, int ratio, int shared_limit,
                       const Variant& variant) {
  const auto head_dim = static_cast<int>(shape.head_dim);
  const DecodeGeometry geometry =
      decode_geometry(head_dim, ratio, shape.p32 == Switch::kOn, shared_limit);
  window_rows::KernelSource source(shape, ratio, variant);
  source.set("tile_keys", kTile64Keys);
  source.set("stage_dims", stage_dims(head_dim));
  source.set("stages", geometry.stages);
  source.set("warps", geometry.warps);
  source.set("head_blocks", geometry.blocks);
  source.set("shared_bytes", geometry.shared_bytes);
  return {std::move(source).finish("window_rows/tile64_decode.cuh"),
          {{"broach_window_rows_tile64_decode", static_cast<std::uint32_t>(geometry.warps) * 32,
            static_cast<std::uint32_t>(geometry.shared_bytes)},
           {"broach_window_rows_tile64_combine", kCombineThreads, 0}}};
}

}  // namespace

Rendered render_window_rows_tile64(const WindowRowsShape& shape, const Target& target,
                                   const Variant& variant) {
  const bool generic = variant.generic == Switch::kOn;
  const int ratio = generic ? kLargestRatio : static_cast<int>(shape.gqa_ratio);
  return shape.form == Form::kPrefill
             ? render_prefill(shape, ratio, target, variant)
             : render_decode(shape, ratio, static_cast<int>(target.max_shared_bytes), variant);
}

}  // namespace broach::specializer
