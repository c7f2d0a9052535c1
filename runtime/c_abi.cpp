#include <cstddef>
#include <utility>

#include "broach/broach.h"
#include "broach/runtime.hpp"
#include "broach/version.hpp"
#include "runtime/c_abi_guard.hpp"
#include "runtime/c_abi_structs.hpp"

struct broach_window_rows {
  broach::WindowRows op;
};

namespace {

using broach::ErrorCode;
using broach::runtime::guarded;
using broach::runtime::tell;

static_assert(static_cast<int>(ErrorCode::kInvalidArgument) == BROACH_INVALID_ARGUMENT);
static_assert(static_cast<int>(ErrorCode::kUnsupported) == BROACH_UNSUPPORTED);
static_assert(static_cast<int>(ErrorCode::kNotFound) == BROACH_NOT_FOUND);
static_assert(static_cast<int>(ErrorCode::kCompileFailed) == BROACH_COMPILE_FAILED);
static_assert(static_cast<int>(ErrorCode::kCompilerMissing) == BROACH_COMPILER_MISSING);
static_assert(static_cast<int>(ErrorCode::kCompilerDied) == BROACH_COMPILER_DIED);
static_assert(static_cast<int>(ErrorCode::kTimedOut) == BROACH_TIMED_OUT);
static_assert(static_cast<int>(ErrorCode::kIo) == BROACH_IO);
static_assert(static_cast<int>(ErrorCode::kDamaged) == BROACH_DAMAGED);
static_assert(static_cast<int>(ErrorCode::kDenied) == BROACH_DENIED);
static_assert(static_cast<int>(ErrorCode::kDriver) == BROACH_DRIVER);
static_assert(static_cast<int>(ErrorCode::kLimitExceeded) == BROACH_LIMIT_EXCEEDED);
static_assert(static_cast<int>(ErrorCode::kNotWarmed) == BROACH_NOT_WARMED);
static_assert(static_cast<int>(ErrorCode::kCapturing) == BROACH_CAPTURING);
static_assert(static_cast<int>(ErrorCode::kOutOfMemory) == BROACH_OUT_OF_MEMORY);
static_assert(static_cast<int>(ErrorCode::kInternal) == BROACH_INTERNAL);

/// Launches `op` on a caller's arguments by one of the operator's launches.
template <class Struct, class Args>
broach_status launch(const broach_window_rows* op, const Struct* args, void* stream,
                     broach_message* message,
                     broach::Result<void> (broach::WindowRows::*form)(const Args&, void*) const) {
  return guarded(message, [&]() -> broach_status {
    if (op == nullptr) return tell(message, ErrorCode::kInvalidArgument, "op is NULL");
    const auto read = broach::runtime::args_from(args);
    if (!read) return tell(message, read.error());
    const auto launched = (op->op.*form)(*read, stream);
    return launched ? BROACH_OK : tell(message, launched.error());
  });
}

}  // namespace

const char* broach_version(void) { return BROACH_VERSION; }

const char* broach_status_name(broach_status status) {
  if (status == BROACH_OK) return "ok";
  // The names are string literals, so each ends in a zero byte.
  return broach::name_of(static_cast<ErrorCode>(status)).data();
}

broach_status broach_runtime_create(const broach_runtime_options* options, broach_runtime** runtime,
                                    broach_message* message) {
  return guarded(message, [&]() -> broach_status {
    if (runtime == nullptr) return tell(message, ErrorCode::kInvalidArgument, "runtime is NULL");
    *runtime = nullptr;
    auto read = broach::runtime::options_from(options);
    if (!read) return tell(message, read.error());
    auto made = broach::Runtime::create(*std::move(read));
    if (!made) return tell(message, made.error());
    *runtime = new broach_runtime(*std::move(made));
    return BROACH_OK;
  });
}

void broach_runtime_destroy(broach_runtime* runtime) { delete runtime; }

const char* broach_runtime_device_name(const broach_runtime* runtime) {
  return runtime == nullptr ? "" : runtime->device.c_str();
}

const char* broach_runtime_target_name(const broach_runtime* runtime) {
  return runtime == nullptr ? "" : runtime->target.c_str();
}

broach_status broach_window_rows_create(broach_runtime* runtime,
                                        const broach_window_rows_shape* shape, void* stream,
                                        broach_window_rows** op, broach_message* message) {
  return guarded(message, [&]() -> broach_status {
    if (op == nullptr) return tell(message, ErrorCode::kInvalidArgument, "op is NULL");
    *op = nullptr;
    if (runtime == nullptr) return tell(message, ErrorCode::kInvalidArgument, "runtime is NULL");
    const auto read = broach::runtime::shape_from(shape);
    if (!read) return tell(message, read.error());
    auto made = runtime->runtime.window_rows(*read, stream);
    if (!made) return tell(message, made.error());
    *op = new broach_window_rows{*std::move(made)};
    return BROACH_OK;
  });
}

void broach_window_rows_destroy(broach_window_rows* op) { delete op; }

size_t broach_window_rows_workspace_bytes(const broach_window_rows* op, int32_t rows,
                                          int32_t kv_heads, int32_t max_keys) {
  return op == nullptr ? 0 : op->op.workspace_bytes(rows, kv_heads, max_keys);
}

broach_status broach_window_rows_decode(const broach_window_rows* op,
                                        const broach_window_rows_decode_args* args, void* stream,
                                        broach_message* message) {
  return launch(op, args, stream, message, &broach::WindowRows::decode);
}

broach_status broach_window_rows_prefill(const broach_window_rows* op,
                                         const broach_window_rows_prefill_args* args, void* stream,
                                         broach_message* message) {
  return launch(op, args, stream, message, &broach::WindowRows::prefill);
}
