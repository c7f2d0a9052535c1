#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "broach/result.hpp"
#include "tools/contract/window_rows/cases.hpp"

namespace broach::contract::window_rows {

/// Rows of a chunk that see each other, as an image's do: each up to the last of them.
///
/// Units:   rows of the chunk, from 0, both included.
struct ImageRows {
  std::int32_t first = 0;
  std::int32_t last = 0;
};

/// A chunk of one sequence.
struct PrefillChunk {
  std::int32_t stream = 0;
  std::int32_t position = 0;  ///< Of its first row.
  std::int32_t rows = 1;
  std::optional<ImageRows> image;
};

/// A named prefill launch: the rows of its chunks, one after another.
///
/// Errors:  kInvalidArgument for image rows that the chunk does not have.
Result<CaseSpec> prefill_of(std::string name, const WindowRowsShape& shape, std::int32_t kv_heads,
                            const std::vector<PrefillChunk>& chunks);

}  // namespace broach::contract::window_rows
