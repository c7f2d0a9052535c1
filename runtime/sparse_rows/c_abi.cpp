#include <cstddef>
#include <span>
#include <utility>

#include "broach/sparse_rows.h"
#include "broach/sparse_rows.hpp"
#include "runtime/c_abi_guard.hpp"
#include "runtime/c_abi_sized.hpp"

struct broach_sparse_rows {
  broach::SparseRows op;
};

namespace broach {
namespace {

using runtime::EnumReader;
using runtime::guarded;
using runtime::sized_copy;
using runtime::tell;

static_assert(static_cast<int>(SparseTile::kMma) == BROACH_TILE_MMA);
static_assert(static_cast<int>(QueryDtype::kF32) == BROACH_Q_F32);

Result<SparseRowsShape> shape_from(const broach_sparse_rows_shape* shape) {
  auto from = sized_copy(shape, sizeof(broach_sparse_rows_shape), "broach_sparse_rows_shape");
  if (!from) return from.error();
  SparseRowsShape to;
  to.head_dim = from->head_dim;
  to.gqa_ratio = from->gqa_ratio;
  to.compress_ratio = from->compress_ratio;
  if (from->part_count != 0) to.part_count = from->part_count;
  if (from->p_parts != 0) to.p_parts = from->p_parts;
  to.kv_layout.length = from->kv_layout_length;
  EnumReader enums;
  enums.read(from->tile, SparseTile::kMma, "broach_sparse_rows_shape.tile", to.tile);
  enums.read(from->kv_layout, KvLayoutKind::kPaged, "broach_sparse_rows_shape.kv_layout",
             to.kv_layout.kind);
  enums.read(from->dtype, Dtype::kF16, "broach_sparse_rows_shape.dtype", to.dtype);
  enums.read(from->q_dtype, QueryDtype::kF32, "broach_sparse_rows_shape.q_dtype", to.q_dtype);
  enums.read(from->checked, Switch::kOn, "broach_sparse_rows_shape.checked", to.checked);
  if (!enums.all()) return enums.all().error();
  return to;
}

}  // namespace
}  // namespace broach

broach_status broach_sparse_rows_create(broach_runtime* runtime,
                                        const broach_sparse_rows_shape* shape,
                                        uint32_t model_compress_ratio, void* stream,
                                        broach_sparse_rows** op, broach_message* message) {
  using namespace broach;
  return guarded(message, [&]() -> broach_status {
    if (op == nullptr) return tell(message, ErrorCode::kInvalidArgument, "op is NULL");
    *op = nullptr;
    if (runtime == nullptr) return tell(message, ErrorCode::kInvalidArgument, "runtime is NULL");
    const auto read = shape_from(shape);
    if (!read) return tell(message, read.error());
    auto made = sparse_rows_operator(runtime->runtime, *read, model_compress_ratio, stream);
    if (!made) return tell(message, made.error());
    *op = new broach_sparse_rows{*std::move(made)};
    return BROACH_OK;
  });
}

void broach_sparse_rows_destroy(broach_sparse_rows* op) { delete op; }

size_t broach_sparse_rows_workspace_bytes(const broach_sparse_rows* op, int32_t rows,
                                          int32_t kv_heads) {
  return op == nullptr ? 0 : op->op.workspace_bytes(rows, kv_heads);
}

broach_status broach_sparse_rows_launch(const broach_sparse_rows* op,
                                        const broach_sparse_rows_args* args, void* stream,
                                        broach_message* message) {
  using namespace broach;
  return guarded(message, [&]() -> broach_status {
    if (op == nullptr) return tell(message, ErrorCode::kInvalidArgument, "op is NULL");
    const auto read = sized_copy(args, sizeof(broach_sparse_rows_args), "broach_sparse_rows_args");
    if (!read) return tell(message, read.error());
    const auto launched = op->op.launch(*read, stream);
    return launched ? BROACH_OK : tell(message, launched.error());
  });
}

broach_status broach_sparse_rows_check_selection(uint32_t compress_ratio, int32_t position,
                                                 const int32_t* blocks, int32_t count,
                                                 broach_message* message) {
  using namespace broach;
  return guarded(message, [&]() -> broach_status {
    if (count < 0 || (blocks == nullptr && count > 0)) {
      return tell(message, ErrorCode::kInvalidArgument, "blocks is NULL or count below 0");
    }
    const auto sound =
        check_sparse_selection(compress_ratio, position, {blocks, static_cast<std::size_t>(count)});
    return sound ? BROACH_OK : tell(message, sound.error());
  });
}
