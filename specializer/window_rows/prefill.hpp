#pragma once

#include <optional>
#include <string_view>

#include "specializer/window_rows/render.hpp"

namespace broach::specializer::window_rows {

/// The constants of a prefill kernel that follow from the shape and the target's shared memory.
struct PrefillGeometry {
  int stage_dims;  ///< Dims of a KV stage.
  int rows;        ///< Of a block.
  int warps;
  int stages;
  int shared_bytes;
  bool warpgroups;    ///< Whether they multiply, and not single warps.
  int copy_rows = 0;  ///< Keys of a tensor copy, in a pipeline; 0: threads copy.
};

/// Warps that multiply, with KV stages of `stage_dims` dims, or fewer where shared memory is short.
PrefillGeometry prefill_geometry(int head_dim, int tile_keys, int stage_dims, bool generic,
                                 int shared_limit);

/// Warpgroups that multiply tiles of 64 keys.
PrefillGeometry warpgroup_prefill_geometry(int head_dim, int shared_limit);

/// Consumer warpgroups fed by a producer of tensor copies; nothing for a shape that it cannot
/// serve: a head_dim without whole swizzled tiles or above 256, a ring or pages whose length no
/// power of two of at least 8 divides.
std::optional<PrefillGeometry> pipeline_prefill_geometry(const WindowRowsShape& shape,
                                                         int shared_limit);

/// A prefill in `arith`, "tile64": kernel_src/window_rows/<arith>_prefill.cuh, or
/// <arith>_prefill_warpgroup.cuh, for `geometry`, with every fault that such a prefill can be
/// planted with.
Rendered render_prefill(const WindowRowsShape& shape, int ratio, const Variant& variant,
                        std::string_view arith, int tile_keys, const PrefillGeometry& geometry);

}  // namespace broach::specializer::window_rows
