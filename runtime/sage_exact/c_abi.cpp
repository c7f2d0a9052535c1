#include <cstddef>
#include <utility>

#include "broach/sage_exact.h"
#include "broach/sage_exact.hpp"
#include "runtime/c_abi_guard.hpp"
#include "runtime/c_abi_sized.hpp"

struct broach_sage_exact {
  broach::SageExact op;
};

namespace broach {
namespace {

using runtime::guarded;
using runtime::read_enum;
using runtime::sized_copy;
using runtime::tell;

static_assert(static_cast<int>(SageSchedule::kPlain) == BROACH_SAGE_SCHEDULE_PLAIN);
static_assert(static_cast<int>(SageSchedule::kWarpgroup) == BROACH_SAGE_SCHEDULE_WARPGROUP);

Result<SageExactShape> shape_from(const broach_sage_exact_shape* shape) {
  auto from = sized_copy(shape, sizeof(broach_sage_exact_shape), "broach_sage_exact_shape");
  if (!from) return from.error();
  if (from->reserved != 0) {
    return Error{ErrorCode::kInvalidArgument,
                 "broach_sage_exact_shape.reserved must be 0: fill the structure with zeros first",
                 {}};
  }
  auto schedule =
      read_enum(from->schedule, BROACH_SAGE_SCHEDULE_WARPGROUP, "broach_sage_exact_shape.schedule");
  if (!schedule) return schedule.error();
  SageExactShape to;
  to.schedule = static_cast<SageSchedule>(*schedule);
  if (from->multiprocessors != 0) to.multiprocessors = from->multiprocessors;
  if (from->threads_per_multiprocessor != 0) {
    to.threads_per_multiprocessor = from->threads_per_multiprocessor;
  }
  return to;
}

template <class Args>
broach_status call(const broach_sage_exact* op, const Args* args, const char* name, void* stream,
                   broach_message* message,
                   Result<void> (SageExact::*member)(const Args&, void*) const) {
  return guarded(message, [&]() -> broach_status {
    if (op == nullptr) return tell(message, ErrorCode::kInvalidArgument, "op is NULL");
    const auto read = sized_copy(args, sizeof(Args), name);
    if (!read) return tell(message, read.error());
    const auto launched = (op->op.*member)(*read, stream);
    return launched ? BROACH_OK : tell(message, launched.error());
  });
}

constexpr const char* kArgs = "broach_sage_exact_args";

}  // namespace
}  // namespace broach

broach_status broach_sage_exact_create(broach_runtime* runtime,
                                       const broach_sage_exact_shape* shape, void* stream,
                                       broach_sage_exact** op, broach_message* message) {
  using broach::ErrorCode;
  using broach::runtime::tell;
  return broach::runtime::guarded(message, [&]() -> broach_status {
    if (op == nullptr) return tell(message, ErrorCode::kInvalidArgument, "op is NULL");
    *op = nullptr;
    if (runtime == nullptr) return tell(message, ErrorCode::kInvalidArgument, "runtime is NULL");
    const auto read = broach::shape_from(shape);
    if (!read) return tell(message, read.error());
    auto made = broach::sage_exact(runtime->runtime, *read, stream);
    if (!made) return tell(message, made.error());
    *op = new broach_sage_exact{*std::move(made)};
    return BROACH_OK;
  });
}

void broach_sage_exact_destroy(broach_sage_exact* op) { delete op; }

size_t broach_sage_exact_workspace_bytes(const broach_sage_exact* op, int32_t tokens,
                                         int32_t heads) {
  return op == nullptr ? 0 : op->op.workspace_bytes(tokens, heads);
}

broach_status broach_sage_exact_places(const broach_sage_exact* op,
                                       const broach_sage_exact_args* args,
                                       broach_sage_exact_tensors* tensors,
                                       broach_message* message) {
  using broach::ErrorCode;
  using broach::runtime::tell;
  return broach::runtime::guarded(message, [&]() -> broach_status {
    if (op == nullptr) return tell(message, ErrorCode::kInvalidArgument, "op is NULL");
    if (tensors == nullptr) return tell(message, ErrorCode::kInvalidArgument, "tensors is NULL");
    const auto read = broach::runtime::sized_copy(args, sizeof *args, broach::kArgs);
    if (!read) return tell(message, read.error());
    const auto places = op->op.places(*read);
    if (!places) return tell(message, places.error());
    *tensors = *places;
    return BROACH_OK;
  });
}

broach_status broach_sage_exact_run(const broach_sage_exact* op, const broach_sage_exact_args* args,
                                    void* stream, broach_message* message) {
  return broach::call(op, args, broach::kArgs, stream, message, &broach::SageExact::run);
}

broach_status broach_sage_exact_k_mean(const broach_sage_exact* op,
                                       const broach_sage_exact_args* args, void* stream,
                                       broach_message* message) {
  return broach::call(op, args, broach::kArgs, stream, message, &broach::SageExact::k_mean);
}

broach_status broach_sage_exact_qk_int8(const broach_sage_exact* op,
                                        const broach_sage_exact_args* args, void* stream,
                                        broach_message* message) {
  return broach::call(op, args, broach::kArgs, stream, message, &broach::SageExact::qk_int8);
}

broach_status broach_sage_exact_v_fp8(const broach_sage_exact* op,
                                      const broach_sage_exact_args* args, void* stream,
                                      broach_message* message) {
  return broach::call(op, args, broach::kArgs, stream, message, &broach::SageExact::v_fp8);
}

broach_status broach_sage_exact_attention(const broach_sage_exact* op,
                                          const broach_sage_exact_args* args, void* stream,
                                          broach_message* message) {
  return broach::call(op, args, broach::kArgs, stream, message, &broach::SageExact::attention);
}

broach_status broach_sage_exact_prep(const broach_sage_exact* op,
                                     const broach_sage_exact_prep_args* args, void* stream,
                                     broach_message* message) {
  return broach::call(op, args, "broach_sage_exact_prep_args", stream, message,
                      &broach::SageExact::prep);
}
