#include <cstddef>
#include <utility>

#include "broach/qk_rows.h"
#include "broach/qk_rows.hpp"
#include "runtime/c_abi_guard.hpp"
#include "runtime/c_abi_sized.hpp"

struct broach_qk_rows {
  broach::QkRows op;
};

namespace broach {
namespace {

using runtime::EnumReader;
using runtime::guarded;
using runtime::sized_copy;
using runtime::tell;

static_assert(static_cast<int>(RopeStyle::kInterleaved) == BROACH_ROPE_INTERLEAVED);
static_assert(static_cast<int>(HeadNorm::kRms) == BROACH_NORM_RMS);
static_assert(static_cast<int>(HeadNorm::kL2) == BROACH_NORM_L2);
static_assert(static_cast<int>(QkOrder::kNormRope) == BROACH_ORDER_NORM_ROPE);

Result<QkRowsShape> shape_from(const broach_qk_rows_shape* shape) {
  auto from = sized_copy(shape, sizeof(broach_qk_rows_shape), "broach_qk_rows_shape");
  if (!from) return from.error();
  if (from->reserved != 0) {
    return Error{ErrorCode::kInvalidArgument,
                 "broach_qk_rows_shape.reserved must be 0: fill the structure with zeros first",
                 {}};
  }
  QkRowsShape to;
  to.head_dim = from->head_dim;
  to.gqa_ratio = from->gqa_ratio;
  to.rope_dim = from->rope_dim;
  to.kv_layout.length = from->kv_layout_length;
  EnumReader enums;
  enums.read(from->rope_style, RopeStyle::kInterleaved, "broach_qk_rows_shape.rope_style",
             to.rope_style);
  enums.read(from->norm, HeadNorm::kL2, "broach_qk_rows_shape.norm", to.norm);
  enums.read(from->order, QkOrder::kNormRope, "broach_qk_rows_shape.order", to.order);
  enums.read(from->q_scale, Switch::kOn, "broach_qk_rows_shape.q_scale", to.q_scale);
  enums.read(from->kv_layout, KvLayoutKind::kPaged, "broach_qk_rows_shape.kv_layout",
             to.kv_layout.kind);
  enums.read(from->dtype, Dtype::kF16, "broach_qk_rows_shape.dtype", to.dtype);
  enums.read(from->checked, Switch::kOn, "broach_qk_rows_shape.checked", to.checked);
  if (!enums.all()) return enums.all().error();
  return to;
}

}  // namespace
}  // namespace broach

broach_status broach_qk_rows_create(broach_runtime* runtime, const broach_qk_rows_shape* shape,
                                    void* stream, broach_qk_rows** op, broach_message* message) {
  using namespace broach;
  return guarded(message, [&]() -> broach_status {
    if (op == nullptr) return tell(message, ErrorCode::kInvalidArgument, "op is NULL");
    *op = nullptr;
    if (runtime == nullptr) return tell(message, ErrorCode::kInvalidArgument, "runtime is NULL");
    const auto read = shape_from(shape);
    if (!read) return tell(message, read.error());
    auto made = qk_rows_operator(runtime->runtime, *read, stream);
    if (!made) return tell(message, made.error());
    *op = new broach_qk_rows{*std::move(made)};
    return BROACH_OK;
  });
}

void broach_qk_rows_destroy(broach_qk_rows* op) { delete op; }

broach_status broach_qk_rows_launch(const broach_qk_rows* op, const broach_qk_rows_args* args,
                                    void* stream, broach_message* message) {
  using namespace broach;
  return guarded(message, [&]() -> broach_status {
    if (op == nullptr) return tell(message, ErrorCode::kInvalidArgument, "op is NULL");
    const auto read = sized_copy(args, sizeof(broach_qk_rows_args), "broach_qk_rows_args");
    if (!read) return tell(message, read.error());
    const auto launched = op->op.launch(*read, stream);
    return launched ? BROACH_OK : tell(message, launched.error());
  });
}
