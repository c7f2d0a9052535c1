#pragma once

#include "runtime/runtime_state.hpp"

namespace broach::runtime {

/// Serves a shape that the look-up table does not have under this spelling: resolves it, and builds
/// it once for all the threads that ask.
///
/// Errors:  as Runtime::window_rows.
Result<WindowRows> first_request(Runtime::State& runtime, const WindowRowsShape& shape,
                                 Stream stream);

}  // namespace broach::runtime
