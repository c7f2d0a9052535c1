#include "runtime/window_rows/chunk256_launch.hpp"

#include <limits>

#include "kernel_src/window_rows/geometry.h"
#include "runtime/attention/check_args.hpp"
#include "runtime/launch_stage.hpp"
#include "runtime/saturate.hpp"
#include "runtime/window_rows/decode_args.hpp"

namespace broach::runtime {
namespace {

constexpr std::uint32_t kChunkKeys = window_rows::kChunkKeys;

class Chunk256Launch final : public DecodeLaunch {
 public:
  Chunk256Launch(const WindowRowsShape& shape, LaunchStage partial, LaunchStage combine) noexcept
      : DecodeLaunch(shape), partial_(partial), combine_(combine) {}

  std::size_t workspace_bytes(std::int32_t rows, std::int32_t kv_heads,
                              std::int32_t max_keys) const noexcept override {
    return chunk256_workspace_bytes(shape(), rows, kv_heads, max_keys);
  }

  Result<void> launch(const broach_window_rows_decode_args& args, Stream stream) const override {
    const auto rows = static_cast<std::uint32_t>(args.attention.rows);
    const auto kv_heads = static_cast<std::uint32_t>(args.cache.kv_heads);
    const std::uint32_t chunks =
        chunk256_max_chunks(shape().window, key_bound(args.cache, args.max_keys));
    BroachWindowRowsDecode params = decode_params(shape(), args);
    params.max_partials = static_cast<int>(chunks);
    if (auto launched = partial_.launch(chunks, kv_heads, rows, params, stream); !launched) {
      return launched;
    }
    return combine_.launch(kv_heads * shape().gqa_ratio, rows, 1, params, stream);
  }

 private:
  LaunchStage partial_;
  LaunchStage combine_;
};

}  // namespace

std::uint32_t chunk256_max_chunks(std::uint32_t window, std::int32_t max_keys) noexcept {
  if (window > 0) return (window + kChunkKeys - 2) / kChunkKeys + 1;
  const std::uint32_t keys = max_keys > 0 ? static_cast<std::uint32_t>(max_keys) : 0;
  return (keys + kChunkKeys - 1) / kChunkKeys;
}

std::size_t chunk256_workspace_bytes(const WindowRowsShape& shape, std::int32_t rows,
                                     std::int32_t kv_heads, std::int32_t max_keys) noexcept {
  if (rows <= 0 || kv_heads <= 0) return 0;
  const std::size_t most = saturated_product(
      {static_cast<std::size_t>(rows), static_cast<std::size_t>(kv_heads), shape.gqa_ratio,
       chunk256_max_chunks(shape.window, max_keys), shape.head_dim + 2, sizeof(float)});
  if (most == std::numeric_limits<std::size_t>::max()) return most;
  const window_rows::Chunk256Workspace layout = window_rows::chunk256_workspace(
      rows, static_cast<long long>(kv_heads) * shape.gqa_ratio,
      chunk256_max_chunks(shape.window, max_keys), static_cast<int>(shape.head_dim));
  return static_cast<std::size_t>(layout.floats) * sizeof(float);
}

Result<std::unique_ptr<const DecodeLaunch>> make_chunk256_launch(const WindowRowsShape& shape,
                                                                 const specializer::Plan& plan,
                                                                 Module& module) {
  auto stages =
      pick_stages<2>(plan, module, "a chunk256 plan has a partial and a combine function");
  if (!stages) return stages.error();
  return std::unique_ptr<const DecodeLaunch>(
      std::make_unique<Chunk256Launch>(shape, (*stages)[0], (*stages)[1]));
}

}  // namespace broach::runtime
