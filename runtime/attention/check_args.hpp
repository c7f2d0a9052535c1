#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "broach/attention.h"
#include "broach/result.hpp"
#include "broach/types.hpp"

namespace broach::runtime {

/// What the checks of an attention operator's arguments need of its shape.
struct AttentionShape {
  std::string_view operation;  ///< What messages begin with: a family and an operator.
  std::uint32_t head_dim = 0;
  std::uint32_t gqa_ratio = 0;
  std::uint32_t window = 0;
  KvLayout kv_layout;
  Switch softcap = Switch::kOff;
  Switch sinks = Switch::kOff;
};

/// Bounds that the launch has: where rows and KV heads are axes of a grid.
struct AttentionBounds {
  std::int64_t rows = INT32_MAX;
  std::int64_t kv_heads = INT32_MAX;
};

/// CUDA's bound on a grid's y and z.
inline constexpr std::int64_t kMaxGridYz = 65535;

/// Checks what the host can see of queries, outputs and KV cache. `max_keys` bounds position + 1 of
/// every row; 0 stands for the cache's length.
///
/// Positions, slots and page numbers are in device memory: they are the caller's contract, and the
/// `checked` build's to look at.
///
/// Errors:  kInvalidArgument naming the argument, its value and its bound.
Result<void> check_attention(const AttentionShape& shape, const AttentionBounds& bounds,
                             const broach_attention_rows& attention, const broach_kv_cache& cache,
                             std::int32_t max_keys);

/// Checks a pointer to `int` arrays in device memory.
///
/// Errors:  as check_attention.
Result<void> check_indices(std::string_view operation, const char* name, const int* pointer);

/// Checks scratch against what a launch needs; SIZE_MAX is more than any.
///
/// Errors:  as check_attention.
Result<void> check_workspace(std::string_view operation, const void* workspace, std::size_t bytes,
                             std::size_t needed);

/// kInvalidArgument with a message that begins with the operation.
Error refused(std::string_view operation, std::string message);

/// Positions that a row can see at most, by the cache's size: `max_keys` where the caller gave it,
/// else the cache's length.
inline std::int32_t key_bound(const broach_kv_cache& cache, std::int32_t max_keys) noexcept {
  return max_keys > 0 ? max_keys : cache.length;
}

}  // namespace broach::runtime
