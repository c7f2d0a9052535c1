#pragma once

#include <memory>

#include "tools/contract/harness/run.hpp"

namespace broach::contract::window_rows {

/// The problem of a request: a decode or, of a shape with form=prefill, a prefill. A shape that
/// names neither its heads' size nor their number is the Gemma-4-like one.
///
/// Errors:  kInvalidArgument naming the size, its value and what would work.
Result<std::unique_ptr<const Runner>> runner_of(const RunRequest& request);

}  // namespace broach::contract::window_rows
