#pragma once

#include "broach/result.hpp"
#include "broach/sage_exact.h"
#include "runtime/sage_exact/tensors.hpp"

namespace broach::runtime::sage_exact {

/// What a call has to bring.
enum class Needs : std::uint8_t { kK, kQk, kV, kOut, kAll };

/// Tokens and heads of a call.
///
/// Errors:  kInvalidArgument naming the argument, its value and its bound.
Result<Sizes> checked_sizes(std::int32_t tokens, std::int32_t heads);

/// Holds a call's pointers, strides and workspace against what it needs.
///
/// Errors:  as checked_sizes.
Result<Sizes> check_args(const broach_sage_exact_args& args, Needs needs,
                         std::uint64_t workspace_bytes);

Result<Sizes> check_prep_args(const broach_sage_exact_prep_args& args);

/// Whether attention reads the caller's own quantised tensors: all pointers are set.
///
/// Errors:  kInvalidArgument when only some are.
Result<bool> brings_quantised(const broach_sage_exact_quantised& quantised);

}  // namespace broach::runtime::sage_exact
