#include "runtime/window_rows/prefill_tensors.hpp"

#include <bit>

#include "runtime/window_rows/prefill_args.hpp"

namespace broach::runtime {
namespace {

constexpr std::uint32_t kTileColumns = 64;  // tiles/swizzle.cuh
constexpr std::uint32_t kTileRows = 64;

std::uint64_t positive(std::int64_t value) { return static_cast<std::uint64_t>(value); }
std::uint64_t bytes_of(std::int64_t elements) { return positive(elements) * 2; }

/// One cache tensor, [slots or pages][kv_heads][D / 64][positions][64].
TensorLayout cache_layout(const WindowRowsShape& shape, const broach_kv_cache& cache,
                          const void* data, std::int64_t slot_stride, std::int64_t position_stride,
                          std::int64_t head_stride, std::uint32_t copy_rows) {
  const bool is_paged = shape.kv_layout.kind == KvLayoutKind::kPaged;
  const std::uint32_t tiles = shape.head_dim / kTileColumns;
  TensorLayout layout;
  layout.data = data;
  layout.dims = {kTileColumns,
                 is_paged ? std::uint64_t{shape.kv_layout.length} : positive(cache.length), tiles,
                 positive(cache.kv_heads),
                 is_paged ? (cache.pages > 0 ? positive(cache.pages) : std::uint64_t{1} << 31)
                          : positive(cache.slots)};
  layout.strides = {bytes_of(position_stride), kTileColumns * 2, bytes_of(head_stride),
                    bytes_of(slot_stride)};
  // A whole tile at once, or its columns of 64 one by one.
  layout.box = {kTileColumns, copy_rows, copy_rows == kTileRows ? tiles : 1, 1, 1};
  return layout;
}

}  // namespace

Result<TensorPrefillParams> tensor_prefill_params(const WindowRowsShape& shape,
                                                  const broach_window_rows_prefill_args& args,
                                                  std::uint32_t copy_rows,
                                                  const Function& function) {
  TensorPrefillParams params{};
  params.prefill = prefill_params(shape, args);
  const broach_attention_rows& rows = params.prefill.common.attention;
  const broach_kv_cache& cache = params.prefill.common.cache;
  const std::uint32_t tiles = shape.head_dim / kTileColumns;

  TensorLayout q;
  q.data = rows.q;
  q.dims = {kTileColumns, positive(rows.rows), tiles, positive(cache.kv_heads) * shape.gqa_ratio,
            1};
  q.strides = {bytes_of(rows.q_row_stride), kTileColumns * 2, bytes_of(rows.q_head_stride),
               bytes_of(rows.q_row_stride)};
  q.box = {kTileColumns, kTileRows, tiles, 1, 1};
  const TensorLayout k = cache_layout(shape, cache, cache.k, cache.k_slot_stride,
                                      cache.k_position_stride, cache.k_head_stride, copy_rows);
  const TensorLayout v = cache_layout(shape, cache, cache.v, cache.v_slot_stride,
                                      cache.v_position_stride, cache.v_head_stride, copy_rows);
  const TensorLayout* const layouts[] = {&q, &k, &v};
  BroachTensorMap* const maps[] = {&params.q, &params.k, &params.v};
  for (int i = 0; i < 3; ++i) {
    auto map = function.tensor_map(*layouts[i]);
    if (!map) return map.error();
    *maps[i] = std::bit_cast<BroachTensorMap>(*map);
  }
  return params;
}

}  // namespace broach::runtime
