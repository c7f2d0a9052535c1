#include "runtime/window_rows/tile64_launch.hpp"

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>

#include "kernel_src/window_rows/geometry.h"
#include "runtime/attention/check_args.hpp"
#include "runtime/launch_stage.hpp"
#include "runtime/saturate.hpp"
#include "runtime/window_rows/decode_args.hpp"

namespace broach::runtime {
namespace {

using Combine = Tile64Schedule::Combine;

constexpr std::uint32_t kTileKeys = window_rows::kTile64Keys;

// The last CTA of a row reads every tile's partial: past this many tiles, a CTA a query head does
// it sooner, for the price of a second launch.
constexpr std::uint32_t kMostTilesByLastCta = 64;

constexpr std::uint32_t kBlocksAMultiprocessor = 2;

std::uint64_t next_launch_number() noexcept {
  // Kernels keep 48 bits of it beside a count; 0 would be what cleared memory holds.
  static std::atomic<std::uint64_t> launches{0};
  constexpr std::uint64_t kMost = (std::uint64_t{1} << 48) - 1;
  return launches.fetch_add(1, std::memory_order_relaxed) % kMost + 1;
}

int schedule_value(Combine combine) noexcept {
  switch (combine) {
    case Combine::kInCta:
      return BROACH_TILE64_ONE_CTA;
    case Combine::kByLastCta:
      return BROACH_TILE64_LAST_CTA;
    case Combine::kByKernel:
      return BROACH_TILE64_COMBINE_KERNEL;
  }
  return BROACH_TILE64_ONE_CTA;
}

class Tile64Launch final : public DecodeLaunch {
 public:
  Tile64Launch(const WindowRowsShape& shape, LaunchStage decode, LaunchStage combine,
               std::uint32_t multiprocessors, std::optional<Tile64Schedule> forced) noexcept
      : DecodeLaunch(shape),
        decode_(decode),
        combine_(combine),
        multiprocessors_(multiprocessors),
        forced_(forced) {}

  std::size_t workspace_bytes(std::int32_t rows, std::int32_t kv_heads,
                              std::int32_t max_keys) const noexcept override {
    std::size_t most = 0;
    for (std::int32_t fewer = std::min(rows, most_split_rows(kv_heads)); fewer >= 1; --fewer) {
      most = tile64_workspace_bytes(shape(), schedule(fewer, kv_heads, max_keys), fewer, kv_heads,
                                    max_keys);
      if (most > 0) break;  // Fewer rows leave fewer partials.
    }
    return most;
  }

  Result<void> launch(const broach_window_rows_decode_args& args, Stream stream) const override {
    const Tile64Schedule chosen =
        schedule(args.attention.rows, args.cache.kv_heads, key_bound(args.cache, args.max_keys));
    const auto rows = static_cast<std::uint32_t>(args.attention.rows);
    const auto kv_heads = static_cast<std::uint32_t>(args.cache.kv_heads);
    const std::uint32_t tiles =
        tile64_max_tiles(shape().window, key_bound(args.cache, args.max_keys));
    BroachWindowRowsTile64Decode params{};
    params.decode = decode_params(shape(), args);
    params.decode.max_partials = static_cast<int>(tiles);
    params.launch = next_launch_number();
    params.schedule = schedule_value(chosen.combine);
    const std::uint32_t a_split = chosen.combine == Combine::kInCta ? tiles : chosen.tiles_a_split;
    params.tiles_a_split = static_cast<int>(a_split);
    const std::uint32_t splits = (tiles + a_split - 1) / a_split;
    if (auto launched = decode_.launch(splits, kv_heads, rows, params, stream); !launched) {
      return launched;
    }
    if (chosen.combine != Combine::kByKernel) return {};
    return combine_.launch(shape().gqa_ratio, kv_heads, rows, params, stream);
  }

 private:
  /// Batches above this have one CTA a row, whatever the context.
  std::int32_t most_split_rows(std::int32_t kv_heads) const noexcept {
    if (forced_ || kv_heads <= 0) return std::numeric_limits<std::int32_t>::max();
    const auto pairs = static_cast<std::int64_t>(multiprocessors_) * 3 / 4 + 1;
    return static_cast<std::int32_t>(pairs / kv_heads);
  }

  Tile64Schedule schedule(std::int32_t rows, std::int32_t kv_heads,
                          std::int32_t max_keys) const noexcept {
    if (forced_) return *forced_;
    return choose_tile64_schedule(shape().window, rows, kv_heads, max_keys, multiprocessors_);
  }

  LaunchStage decode_;
  LaunchStage combine_;
  std::uint32_t multiprocessors_;
  std::optional<Tile64Schedule> forced_;
};

}  // namespace

std::uint32_t tile64_max_tiles(std::uint32_t window, std::int32_t max_keys) noexcept {
  const std::uint32_t keys = max_keys > 0 ? static_cast<std::uint32_t>(max_keys) : 1;
  const std::uint32_t of_keys = (keys + kTileKeys - 1) / kTileKeys;
  if (window == 0) return of_keys;
  // A window of W keys that begins anywhere touches (W + 62) / 64 + 1 tiles. A ring's positions go
  // on past its length, so `max_keys` bounds a window's tiles only from above.
  return (window + kTileKeys - 2) / kTileKeys + 1;
}

Tile64Schedule choose_tile64_schedule(std::uint32_t window, std::int32_t rows,
                                      std::int32_t kv_heads, std::int32_t max_keys,
                                      std::uint32_t multiprocessors) noexcept {
  const std::uint64_t tiles = tile64_max_tiles(window, max_keys);
  const std::uint64_t pairs = static_cast<std::uint64_t>(std::max(rows, 1)) *
                              static_cast<std::uint64_t>(std::max(kv_heads, 1));
  if (tiles == 1 || pairs * 4 >= std::uint64_t{multiprocessors} * 3) return {};
  const std::uint64_t wanted = std::uint64_t{multiprocessors} * kBlocksAMultiprocessor;
  const std::uint64_t a_split = (tiles * pairs + wanted - 1) / wanted;
  if (a_split >= tiles) return {};
  return {tiles <= kMostTilesByLastCta ? Combine::kByLastCta : Combine::kByKernel,
          static_cast<std::uint32_t>(a_split)};
}

std::size_t tile64_workspace_bytes(const WindowRowsShape& shape, const Tile64Schedule& schedule,
                                   std::int32_t rows, std::int32_t kv_heads,
                                   std::int32_t max_keys) noexcept {
  if (schedule.combine == Combine::kInCta || rows <= 0 || kv_heads <= 0) return 0;
  const std::size_t pairs = static_cast<std::size_t>(rows) * static_cast<std::size_t>(kv_heads);
  const std::size_t most =
      saturated_product({pairs, shape.gqa_ratio, tile64_max_tiles(shape.window, max_keys),
                         shape.head_dim + 4, sizeof(float)});
  if (most == std::numeric_limits<std::size_t>::max()) return most;
  const window_rows::Tile64Workspace layout = window_rows::tile64_workspace(
      static_cast<long long>(pairs), tile64_max_tiles(shape.window, max_keys),
      static_cast<int>(shape.gqa_ratio), static_cast<int>(shape.head_dim));
  return static_cast<std::size_t>(layout.floats) * sizeof(float);
}

Result<std::unique_ptr<const DecodeLaunch>> make_tile64_launch(
    const WindowRowsShape& shape, const specializer::Plan& plan, Module& module,
    std::uint32_t multiprocessors, std::optional<Tile64Schedule> forced) {
  auto stages =
      pick_stages<2>(plan, module, "a tile64 decode plan has a decode and a combine function");
  if (!stages) return stages.error();
  return std::unique_ptr<const DecodeLaunch>(std::make_unique<Tile64Launch>(
      shape, (*stages)[0], (*stages)[1], std::max(multiprocessors, 1U), forced));
}

}  // namespace broach::runtime
