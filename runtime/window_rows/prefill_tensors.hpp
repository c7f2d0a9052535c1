#pragma once

#include <cstdint>

#include "broach/window_rows.hpp"
#include "kernel_src/window_rows/params.h"
#include "runtime/device.hpp"

namespace broach::runtime {

/// A pipelined prefill's parameters, aligned as the tensor maps in them have to be.
struct alignas(64) TensorPrefillParams : BroachWindowRowsTensorPrefill {};

/// Describes q, k and v of checked arguments for a kernel whose copies take `copy_rows` keys.
///
/// Errors:  the driver's; kUnsupported where there is no tensor copy engine.
Result<TensorPrefillParams> tensor_prefill_params(const WindowRowsShape& shape,
                                                  const broach_window_rows_prefill_args& args,
                                                  std::uint32_t copy_rows,
                                                  const Function& function);

}  // namespace broach::runtime
