#include "specializer/window_rows/prefill.hpp"

#include <fmt/core.h>

#include <cstdint>
#include <utility>

#include "kernel_src/window_rows/geometry.h"
#include "specializer/window_rows/kernel_source.hpp"

namespace broach::specializer::window_rows {
// Four stages while they fit, then fewer, then half as wide: what is left beside 64 rows of queries
// is short at head_dim 512 where a block gets 99 KiB.
PrefillGeometry prefill_geometry(int head_dim, int tile_keys, int stage_dims, bool generic,
                                 int shared_limit) {
  using namespace broach::window_rows;
  PrefillGeometry geometry{stage_dims, kWarpPrefillRows, prefill_warps(head_dim, generic), 4, 0,
                           false};
  const auto bytes = [&] {
    return prefill_shared_bytes(head_dim, tile_keys, geometry.stage_dims, geometry.stages);
  };
  while (geometry.stages > 2 && bytes() > shared_limit) --geometry.stages;
  if (bytes() > shared_limit && geometry.stage_dims % 32 == 0) {
    geometry.stage_dims /= 2;
    geometry.stages = 4;
    while (geometry.stages > 2 && bytes() > shared_limit) --geometry.stages;
  }
  geometry.shared_bytes = bytes();
  return geometry;
}

// As many stages as fit: they are what one warpgroup may be ahead of another by. More than a dozen
// would hold whole tiles that nobody waits for.
PrefillGeometry warpgroup_prefill_geometry(int head_dim, int shared_limit) {
  using namespace broach::window_rows;
  PrefillGeometry geometry{swizzled_stage_dims(head_dim),
                           warpgroup_prefill_rows(head_dim),
                           prefill_warpgroups(head_dim) * 4,
                           12,
                           0,
                           true};
  while (warpgroup_prefill_shared_bytes(head_dim, geometry.stages) > shared_limit) {
    --geometry.stages;
  }
  geometry.shared_bytes = warpgroup_prefill_shared_bytes(head_dim, geometry.stages);
  return geometry;
}

std::optional<PrefillGeometry> pipeline_prefill_geometry(const WindowRowsShape& shape,
                                                         int shared_limit) {
  using namespace broach::window_rows;
  const auto head_dim = static_cast<int>(shape.head_dim);
  if (!fits_warpgroups(head_dim) || head_dim > 256) return std::nullopt;
  const int copy_rows = shape.kv_layout.kind == KvLayoutKind::kLinear
                            ? kTile64Keys
                            : copy_rows_of(static_cast<int>(shape.kv_layout.length));
  if (copy_rows < kLeastCopyRows) return std::nullopt;
  const int consumers = pipeline_consumers(head_dim, shape.p32 == Switch::kOn);
  int slots = kMostSlots;
  while (pipeline_prefill_shared_bytes(head_dim, consumers, slots) > shared_limit) --slots;
  return PrefillGeometry{head_dim,
                         64 * consumers,
                         consumers * 4,
                         2 * slots,
                         pipeline_prefill_shared_bytes(head_dim, consumers, slots),
                         true,
                         copy_rows};
}

Rendered render_prefill(const WindowRowsShape& shape, int ratio, const Variant& variant,
                        std::string_view arith, int tile_keys, const PrefillGeometry& geometry) {
  KernelSource source(shape, ratio, variant);
  source.set("tile_keys", tile_keys);
  source.set("stage_dims", geometry.stage_dims);
  source.set("stages", geometry.stages);
  source.set("swizzled", geometry.warpgroups);
  source.set("copy_rows", geometry.copy_rows);
  source.set("warps", geometry.warps);
  source.set("rows", geometry.rows);
  source.set("shared_bytes", geometry.shared_bytes);
  const bool is_pipeline = geometry.copy_rows > 0;
  const std::string_view unit = is_pipeline ? "_pipeline" : geometry.warpgroups ? "_warpgroup" : "";
  const int threads =
      geometry.warps * 32 + (is_pipeline ? broach::window_rows::kProducerThreads : 0);
  KernelEntry entry{fmt::format("broach_window_rows_{}_prefill", arith),
                    static_cast<std::uint32_t>(threads),
                    static_cast<std::uint32_t>(geometry.shared_bytes)};
  entry.block_rows = static_cast<std::uint32_t>(geometry.rows);
  entry.copy_rows = static_cast<std::uint32_t>(geometry.copy_rows);
  return {std::move(source).finish(fmt::format("window_rows/{}_prefill{}.cuh", arith, unit)),
          {std::move(entry)}};
}

}  // namespace broach::specializer::window_rows
