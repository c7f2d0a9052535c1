#include <cstddef>
#include <utility>

#include "broach/window_rows.h"
#include "broach/window_rows.hpp"
#include "runtime/c_abi_guard.hpp"
#include "runtime/c_abi_sized.hpp"

struct broach_window_rows_decode {
  broach::WindowRowsDecode op;
};
struct broach_window_rows_prefill {
  broach::WindowRowsPrefill op;
};

namespace broach {
namespace {

using runtime::EnumReader;
using runtime::guarded;
using runtime::sized_copy;
using runtime::tell;

static_assert(static_cast<int>(Dtype::kF16) == BROACH_F16);
static_assert(static_cast<int>(Switch::kOn) == BROACH_ON);
static_assert(static_cast<int>(Arith::kChunk256) == BROACH_ARITH_CHUNK256);
static_assert(static_cast<int>(Arith::kTile64) == BROACH_ARITH_TILE64);
static_assert(static_cast<int>(Arith::kMma32) == BROACH_ARITH_MMA32);
static_assert(static_cast<int>(Arith::kTile64Ex2) == BROACH_ARITH_TILE64_EX2);
static_assert(static_cast<int>(KvLayoutKind::kRing) == BROACH_KV_RING);
static_assert(static_cast<int>(KvLayoutKind::kPaged) == BROACH_KV_PAGED);

Result<WindowRowsShape> shape_from(const broach_window_rows_shape* shape) {
  auto from = sized_copy(shape, sizeof(broach_window_rows_shape), "broach_window_rows_shape");
  if (!from) return from.error();
  if (from->reserved != 0) {
    return Error{ErrorCode::kInvalidArgument,
                 "broach_window_rows_shape.reserved must be 0: fill the structure with zeros first",
                 {}};
  }
  WindowRowsShape to;
  to.head_dim = from->head_dim;
  to.gqa_ratio = from->gqa_ratio;
  to.window = from->window;
  to.kv_layout.length = from->kv_layout_length;
  EnumReader enums;
  enums.read(from->kv_layout, KvLayoutKind::kPaged, "broach_window_rows_shape.kv_layout",
             to.kv_layout.kind);
  enums.read(from->dtype, Dtype::kF16, "broach_window_rows_shape.dtype", to.dtype);
  enums.read(from->arith, Arith::kTile64Ex2, "broach_window_rows_shape.arith", to.arith);
  enums.read(from->p32, Switch::kOn, "broach_window_rows_shape.p32", to.p32);
  enums.read(from->softcap, Switch::kOn, "broach_window_rows_shape.softcap", to.softcap);
  enums.read(from->sinks, Switch::kOn, "broach_window_rows_shape.sinks", to.sinks);
  enums.read(from->checked, Switch::kOn, "broach_window_rows_shape.checked", to.checked);
  if (!enums.all()) return enums.all().error();
  return to;
}

template <class Handle, class Made>
broach_status create(broach_runtime* runtime, const broach_window_rows_shape* shape, void* stream,
                     Handle** op, broach_message* message,
                     Result<Made> (*make)(Runtime&, const WindowRowsShape&, void*)) {
  return guarded(message, [&]() -> broach_status {
    if (op == nullptr) return tell(message, ErrorCode::kInvalidArgument, "op is NULL");
    *op = nullptr;
    if (runtime == nullptr) return tell(message, ErrorCode::kInvalidArgument, "runtime is NULL");
    const auto read = shape_from(shape);
    if (!read) return tell(message, read.error());
    auto made = make(runtime->runtime, *read, stream);
    if (!made) return tell(message, made.error());
    *op = new Handle{*std::move(made)};
    return BROACH_OK;
  });
}

template <class Handle, class Args>
broach_status launch(const Handle* op, const Args* args, const char* name, void* stream,
                     broach_message* message) {
  return guarded(message, [&]() -> broach_status {
    if (op == nullptr) return tell(message, ErrorCode::kInvalidArgument, "op is NULL");
    const auto read = sized_copy(args, sizeof(Args), name);
    if (!read) return tell(message, read.error());
    const auto launched = op->op.launch(*read, stream);
    return launched ? BROACH_OK : tell(message, launched.error());
  });
}

}  // namespace
}  // namespace broach

broach_status broach_window_rows_decode_create(broach_runtime* runtime,
                                               const broach_window_rows_shape* shape, void* stream,
                                               broach_window_rows_decode** op,
                                               broach_message* message) {
  return broach::create(runtime, shape, stream, op, message, &broach::window_rows_decode);
}

broach_status broach_window_rows_prefill_create(broach_runtime* runtime,
                                                const broach_window_rows_shape* shape, void* stream,
                                                broach_window_rows_prefill** op,
                                                broach_message* message) {
  return broach::create(runtime, shape, stream, op, message, &broach::window_rows_prefill);
}

void broach_window_rows_decode_destroy(broach_window_rows_decode* op) { delete op; }

void broach_window_rows_prefill_destroy(broach_window_rows_prefill* op) { delete op; }

size_t broach_window_rows_decode_workspace_bytes(const broach_window_rows_decode* op, int32_t rows,
                                                 int32_t kv_heads, int32_t max_keys) {
  return op == nullptr ? 0 : op->op.workspace_bytes(rows, kv_heads, max_keys);
}

broach_status broach_window_rows_decode_launch(const broach_window_rows_decode* op,
                                               const broach_window_rows_decode_args* args,
                                               void* stream, broach_message* message) {
  return broach::launch(op, args, "broach_window_rows_decode_args", stream, message);
}

broach_status broach_window_rows_prefill_launch(const broach_window_rows_prefill* op,
                                                const broach_window_rows_prefill_args* args,
                                                void* stream, broach_message* message) {
  return broach::launch(op, args, "broach_window_rows_prefill_args", stream, message);
}
