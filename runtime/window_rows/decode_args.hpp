#pragma once

#include <cstddef>
#include <string_view>

#include "broach/runtime.hpp"
#include "kernel_src/window_rows/params.h"

namespace broach::runtime {

/// Checks every argument of a decode that the host can see; `workspace_needed` is the plan's.
///
/// Positions, slots and page numbers are in device memory: they are the caller's contract, and the
/// `checked` build's to look at.
///
/// Errors:  kInvalidArgument naming the argument, its value and its bound.
Result<void> check_decode_args(const WindowRowsShape& shape, const DecodeArgs& args);
/// The same without a decode's bound on rows, for messages that begin with `operation`.
Result<void> check_common_args(const WindowRowsShape& shape, const DecodeArgs& args,
                               std::string_view operation);
Result<void> check_workspace(const DecodeArgs& args, std::size_t workspace_needed);

/// Positions that an argument check has shown a row can see at most, by the cache's size:
/// `max_keys` where the caller gave it, else `length`.
std::int32_t key_bound(const DecodeArgs& args) noexcept;

/// The kernels' parameter struct, all but `max_partials`, which is the plan's.
BroachWindowRowsDecode decode_params(const WindowRowsShape& shape, const DecodeArgs& args) noexcept;

}  // namespace broach::runtime
