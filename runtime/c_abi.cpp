#include <utility>

#include "broach/broach.h"
#include "broach/runtime.hpp"
#include "runtime/c_abi_guard.hpp"
#include "runtime/c_abi_options.hpp"

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
