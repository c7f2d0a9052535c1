#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "broach/window_rows.hpp"

namespace broach::bench {

/// One launch that is timed.
///
/// Shapes:  decode: `rows` streams of one row each, every one at position keys - 1. Prefill: one
///          sequence whose `rows` rows end at position keys - 1.
struct AttentionCase {
  std::string name;
  WindowRowsShape shape;
  std::int32_t kv_heads = 0;
  std::int32_t rows = 0;
  std::int32_t keys = 0;

  bool is_prefill() const noexcept { return shape.form == Form::kPrefill; }
  std::int32_t heads() const noexcept {
    return kv_heads * static_cast<std::int32_t>(shape.gqa_ratio);
  }

  /// Pairs of a row and a key that it sees, over one query head.
  double pairs() const noexcept;

  /// Operations of the two products: 4 x D a (row, query head, key), P counted twice under p32.
  double operations() const noexcept;

  /// Bytes that must move at least once: the keys and values that a row sees, q and the output.
  double bytes() const noexcept;
};

/// The cases of docs/performance.md, in its order.
std::vector<AttentionCase> attention_cases();

}  // namespace broach::bench
