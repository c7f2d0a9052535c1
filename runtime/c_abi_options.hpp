#pragma once

#include "broach/broach.h"
#include "broach/options.hpp"
#include "broach/result.hpp"

namespace broach::runtime {

/// The C interface's options over what the environment says, at whatever size the caller's header
/// had.
///
/// Errors:  kInvalidArgument for a size that no header had, or a value outside its enumeration,
///          naming the field; kUnsupported when a field that this library does not know is set.
Result<Options> options_from(const broach_runtime_options* options);

}  // namespace broach::runtime
