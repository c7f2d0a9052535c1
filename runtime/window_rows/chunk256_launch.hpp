#pragma once

#include <cstdint>
#include <memory>

#include "runtime/window_rows/decode_launch.hpp"

namespace broach::runtime {

/// Chunks of 256 keys at absolute positions that one row can touch at most.
///
/// A window of W keys that begins anywhere touches (W + 254) / 256 + 1 of them; without a window a
/// row touches those of its whole context of `max_keys`.
std::uint32_t chunk256_max_chunks(std::uint32_t window, std::int32_t max_keys) noexcept;

/// Scratch of a chunk256 decode: a maximum, a sum and head_dim values a (row, head, chunk).
///
/// Units:   bytes.
std::size_t chunk256_workspace_bytes(const WindowRowsShape& shape, std::int32_t rows,
                                     std::int32_t kv_heads, std::int32_t max_keys) noexcept;

/// A block a (row, KV head, chunk), then a block a (row, query head) that combines.
Result<std::unique_ptr<const DecodeLaunch>> make_chunk256_launch(const WindowRowsShape& shape,
                                                                 const specializer::Plan& plan,
                                                                 Module& module);

}  // namespace broach::runtime
