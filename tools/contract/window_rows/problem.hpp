#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "broach/window_rows.hpp"

namespace broach::contract::window_rows {

/// What a launch works on, of a decode or, where it has sequences, of a prefill.
struct ProblemArgs {
  broach_attention_rows attention{};
  broach_kv_cache cache{};
  const std::int32_t* positions = nullptr;
  const std::int32_t* slots = nullptr;
  const std::int32_t* offsets = nullptr;
  const std::int32_t* hi = nullptr;
  std::int32_t sequences = 0;
  std::int32_t max_keys = 0;
  void* workspace = nullptr;
  std::size_t workspace_bytes = 0;

  WindowRowsDecodeArgs decode() const noexcept;
  WindowRowsPrefillArgs prefill() const noexcept;
};

/// A launch, decode or prefill, with every byte of its inputs on the host's side.
///
/// Shapes:  as the arguments in broach/window_rows.h give them, but positions, slots and last_keys
/// are
///          [rows] in both forms; the vectors are as long as the strides reach, so that padding
///          between rows and heads is part of them.
/// Units:   strides in elements.
struct Problem {
  WindowRowsShape shape;
  std::int32_t rows = 0;
  std::int32_t kv_heads = 0;
  std::int32_t slot_count = 0;
  std::int32_t length = 0;    ///< Positions a slot holds.
  std::int32_t max_keys = 0;  ///< Greatest position + 1.
  float scale = 1.0F;
  float softcap = 0.0F;
  std::int64_t q_row_stride = 0, q_head_stride = 0;
  std::int64_t k_slot_stride = 0, k_position_stride = 0, k_head_stride = 0;
  std::int64_t v_slot_stride = 0, v_position_stride = 0, v_head_stride = 0;
  std::int64_t out_row_stride = 0, out_head_stride = 0;
  std::int64_t page_table_stride = 0;
  std::vector<std::uint16_t> q, k, v;
  std::vector<std::int32_t> positions, slots, page_table;
  std::vector<std::int32_t> last_keys;  ///< The last position each row sees; empty: its own.
  std::vector<std::int32_t> offsets;    ///< Prefill: first row of each sequence, then `rows`.
  bool passes_hi = false;               ///< Prefill: whether the launch gets `hi`, the last keys.
  std::vector<float> sinks;

  std::int32_t heads() const noexcept {
    return kv_heads * static_cast<std::int32_t>(shape.gqa_ratio);
  }
  std::int32_t head_dim() const noexcept { return static_cast<std::int32_t>(shape.head_dim); }

  /// The first and the last position that a row sees; it sees every one between them.
  std::int32_t first_key(std::int32_t row) const noexcept;
  std::int32_t last_key(std::int32_t row) const noexcept {
    return (last_keys.empty() ? positions : last_keys)[static_cast<std::size_t>(row)];
  }
  bool is_prefill() const noexcept { return !offsets.empty(); }
  std::int32_t sequences() const noexcept {
    return is_prefill() ? static_cast<std::int32_t>(offsets.size()) - 1 : 0;
  }

  /// Where q of (row, query head) starts.
  std::int64_t q_at(std::int32_t row, std::int32_t head) const noexcept {
    return row * q_row_stride + head * q_head_stride;
  }
  std::int64_t out_at(std::int32_t row, std::int32_t head) const noexcept {
    return row * out_row_stride + head * out_head_stride;
  }
  /// Where the key and the value of (row's stream, position, KV head) start.
  std::int64_t k_at(std::int32_t row, std::int32_t position, std::int32_t kv_head) const noexcept;
  std::int64_t v_at(std::int32_t row, std::int32_t position, std::int32_t kv_head) const noexcept;

  /// Elements from the first output to one past the last.
  std::size_t out_elems() const noexcept;

  /// The same launch with these rows only, in this order, over the same caches. In a prefill each
  /// becomes a sequence of its own, so it has to see no key behind its own position.
  Problem take(const std::vector<std::int32_t>& chosen) const;

  /// The same prefill with one more cut: the sequence of row `at` ends before it, and another
  /// begins with it. No row before the cut may see a key behind it.
  Problem cut(std::int32_t at) const;

  /// The arguments without any pointer.
  ProblemArgs sizes() const noexcept;
};

/// 0, 1, ... rows - 1.
std::vector<std::int32_t> first_rows(std::int32_t rows);

}  // namespace broach::contract::window_rows
