#pragma once

#include <cstdint>
#include <memory>

#include "runtime/window_rows/decode_launch.hpp"

namespace broach::runtime {

/// Blocks of `block_rows` rows along the grid's x that cover any split of `rows` over `sequences`:
/// each sequence may end in a block of its own that is not full.
std::uint32_t prefill_row_blocks(std::int32_t rows, std::int32_t sequences,
                                 std::uint32_t block_rows) noexcept;

/// A block a (rows of a sequence, as many as the plan's function works on; query head); no
/// workspace.
Result<std::unique_ptr<const DecodeLaunch>> make_prefill_launch(const WindowRowsShape& shape,
                                                                const specializer::Plan& plan,
                                                                Module& module);

}  // namespace broach::runtime
