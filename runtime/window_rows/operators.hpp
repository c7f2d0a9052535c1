#pragma once

#include "broach/window_rows.hpp"
#include "runtime/runtime_state.hpp"

namespace broach::runtime {

/// What the functions of the same names in broach/window_rows.hpp do, of a runtime's state.
Result<WindowRowsDecode> window_rows_decode(Runtime::State& state, const WindowRowsShape& shape,
                                            Stream stream = nullptr);
Result<WindowRowsPrefill> window_rows_prefill(Runtime::State& state, const WindowRowsShape& shape,
                                              Stream stream = nullptr);

}  // namespace broach::runtime
