#pragma once

#include <memory>

#include "tools/contract/harness/run.hpp"

namespace broach::contract::sparse_rows {

/// The problem of a request: rows of one stream, whose last is at the position asked for, each with
/// up to 512 blocks selected, at random and in clusters in turn. A shape that names neither its
/// heads' size nor their number is a layer of 24 query heads over 2, blocks of 4 keys.
///
/// Errors:  kInvalidArgument naming the size, its value and what would work.
Result<std::unique_ptr<const Runner>> runner_of(const RunRequest& request);

}  // namespace broach::contract::sparse_rows
