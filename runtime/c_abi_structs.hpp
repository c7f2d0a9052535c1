#pragma once

#include "broach/broach.h"
#include "broach/runtime.hpp"

namespace broach::runtime {

/// The C interface's structures as the C++ interface's, at whatever size the caller's header had.
///
/// Errors:  kInvalidArgument for a size that no header had, or a value outside its enumeration,
///          naming the field; kUnsupported when a field that this library does not know is set.
Result<Options> options_from(const broach_runtime_options* options);
Result<WindowRowsShape> shape_from(const broach_window_rows_shape* shape);
Result<DecodeArgs> args_from(const broach_window_rows_decode_args* args);
Result<PrefillArgs> args_from(const broach_window_rows_prefill_args* args);

}  // namespace broach::runtime
