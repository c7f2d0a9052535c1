#include "tools/contract/window_rows/prefill.hpp"

#include <fmt/core.h>

#include <utility>

namespace broach::contract::window_rows {

Result<CaseSpec> prefill_of(std::string name, const WindowRowsShape& shape, std::int32_t kv_heads,
                            const std::vector<PrefillChunk>& chunks) {
  CaseSpec made;
  made.name = std::move(name);
  made.recipe.shape = shape;
  made.recipe.kv_heads = kv_heads;
  if (shape.softcap == Switch::kOn) made.recipe.softcap = 50.0F;
  for (const PrefillChunk& chunk : chunks) {
    const auto image = chunk.image;
    if (image && (image->first < 0 || image->last < image->first || image->last >= chunk.rows)) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("rows {}..{} cannot see each other: the chunk has rows 0..{}",
                               image->first, image->last, chunk.rows - 1),
                   ""};
    }
    for (std::int32_t row = 0; row < chunk.rows; ++row) {
      RowAt at{chunk.stream, chunk.position + row};
      if (image && row >= image->first && row <= image->last) {
        at.last = chunk.position + image->last;
      }
      made.recipe.rows.push_back(at);
    }
    made.recipe.sequence_rows.push_back(chunk.rows);
    made.recipe.passes_hi = made.recipe.passes_hi || image.has_value();
  }
  return made;
}

}  // namespace broach::contract::window_rows
