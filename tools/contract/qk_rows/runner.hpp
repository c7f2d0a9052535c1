#pragma once

#include <memory>

#include "tools/contract/harness/run.hpp"

namespace broach::contract::qk_rows {

/// The problem of a request: a chunk of one stream, whose last row is at the position asked for. A
/// shape that names neither its heads' size nor their number is the looped nGPT model's.
///
/// Errors:  kInvalidArgument naming the size, its value and what would work.
Result<std::unique_ptr<const Runner>> runner_of(const RunRequest& request);

}  // namespace broach::contract::qk_rows
