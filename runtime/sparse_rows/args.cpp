#include "runtime/sparse_rows/args.hpp"

#include <fmt/core.h>

#include <utility>

#include "runtime/attention/check_args.hpp"

namespace broach::runtime {
namespace {

constexpr std::string_view kOperation = "sparse_rows";

}  // namespace

Result<void> check_sparse_rows_args(const SparseRowsShape& shape,
                                    const broach_sparse_rows_args& args) {
  AttentionShape attention{};
  attention.operation = kOperation;
  attention.head_dim = shape.head_dim;
  attention.gqa_ratio = shape.gqa_ratio;
  attention.kv_layout = shape.kv_layout;
  // KV heads, and query heads where parts are joined, are an axis of the grid.
  const AttentionBounds bounds{INT32_MAX, kMaxGridYz / shape.gqa_ratio};
  if (auto ok = check_attention(attention, bounds, args.attention, args.cache, 0); !ok) return ok;
  if (auto ok = check_indices(kOperation, "positions", args.positions); !ok) return ok;
  if (auto ok = check_indices(kOperation, "slots", args.slots); !ok) return ok;
  if (auto ok = check_indices(kOperation, "block_counts", args.block_counts); !ok) return ok;
  if (auto ok = check_indices(kOperation, "blocks", args.blocks); !ok) return ok;
  const std::pair<const char*, std::int64_t> strides[] = {
      {"count_row_stride", args.count_row_stride},
      {"count_head_stride", args.count_head_stride},
      {"block_row_stride", args.block_row_stride},
      {"block_head_stride", args.block_head_stride}};
  for (const auto& [name, stride] : strides) {
    if (stride < 0) {
      return refused(kOperation, fmt::format("{} is {}; it must be 0 or more", name, stride));
    }
  }
  return {};
}

BroachSparseRows sparse_rows_params(const SparseRowsShape& shape,
                                    const broach_sparse_rows_args& args) noexcept {
  BroachSparseRows p{};
  p.attention = args.attention;
  p.cache = args.cache;
  p.positions = args.positions;
  p.slots = args.slots;
  p.block_counts = args.block_counts;
  p.blocks = args.blocks;
  p.workspace = args.workspace;
  p.count_row_stride = args.count_row_stride;
  p.count_head_stride = args.count_head_stride;
  p.block_row_stride = args.block_row_stride;
  p.block_head_stride = args.block_head_stride;
  p.compress_ratio = static_cast<int>(shape.compress_ratio);
  p.part_count = static_cast<int>(shape.part_count);
  p.gqa_ratio = static_cast<int>(shape.gqa_ratio);
  p.layout = static_cast<int>(shape.kv_layout.kind);
  p.layout_length = static_cast<int>(shape.kv_layout.length);
  p.splits = 1;
  return p;
}

}  // namespace broach::runtime

namespace broach {

Result<void> check_sparse_selection(std::uint32_t compress_ratio, std::int32_t position,
                                    std::span<const std::int32_t> blocks) {
  using runtime::kOperation;
  if (compress_ratio == 0) return runtime::refused(kOperation, "compress_ratio is 0");
  if (position < 0) {
    return runtime::refused(kOperation,
                            fmt::format("position is {}; it must be 0 or more", position));
  }
  // Blocks that end at or before the position.
  const std::int64_t whole = (std::int64_t{position} + 1) / compress_ratio;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const std::int32_t id = blocks[i];
    if (id < 0 || id >= whole) {
      return runtime::refused(
          kOperation, fmt::format("blocks[{}] is {}, which is past the row: at position {} with {} "
                                  "keys a block, 0 to {} are wholly at or before it",
                                  i, id, position, compress_ratio, whole - 1));
    }
    if (i > 0 && id == blocks[i - 1]) {
      return runtime::refused(kOperation, fmt::format("blocks[{}] is {}, repeated", i, id));
    }
    if (i > 0 && id < blocks[i - 1]) {
      return runtime::refused(
          kOperation,
          fmt::format("blocks[{}] is {} after {}: ids must increase", i, id, blocks[i - 1]));
    }
  }
  return {};
}

}  // namespace broach
