#pragma once

#include "broach/sage_exact.hpp"
#include "runtime/runtime_state.hpp"

namespace broach::runtime {

/// What broach::sage_exact does, of a runtime's state.
Result<SageExact> sage_exact_operator(Runtime::State& state, const SageExactShape& shape,
                                      Stream stream = nullptr);

}  // namespace broach::runtime
