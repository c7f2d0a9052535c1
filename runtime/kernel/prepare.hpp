#pragma once

#include "broach/kernel.hpp"
#include "broach/result.hpp"
#include "broach/runtime.hpp"
#include "runtime/kernel/kernel_shape.hpp"
#include "runtime/operator.hpp"

namespace broach::runtime {

/// Loads or compiles a kernel on a thread of the runtime's, unless that is under way.
///
/// Returns why there is none: kNotWarmed with reason kPending while it is on the way, or what its
/// last attempt ended with, which is forgotten then.
Error begin_in_background(Runtime::State& runtime, const KernelShapeState& shape);

}  // namespace broach::runtime
