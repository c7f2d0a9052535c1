#include "tools/contract/window_rows/problem.hpp"

#include <algorithm>
#include <numeric>

namespace broach::contract::window_rows {
namespace {

// The cell of a row's stream that holds a position: which slot (or page), and where in it.
struct Cell {
  std::int64_t slot;
  std::int64_t index;
};

Cell cell_of(const Problem& problem, std::int32_t row, std::int32_t position) noexcept {
  const std::int32_t slot = problem.slots[static_cast<std::size_t>(row)];
  const auto length = static_cast<std::int32_t>(problem.shape.kv_layout.length);
  switch (problem.shape.kv_layout.kind) {
    case KvLayoutKind::kLinear:
      return {slot, position};
    case KvLayoutKind::kRing:
      return {slot, position % length};
    case KvLayoutKind::kPaged:
      break;
  }
  const std::int64_t entry = slot * problem.page_table_stride + position / length;
  return {problem.page_table[static_cast<std::size_t>(entry)], position % length};
}

}  // namespace

std::int32_t Problem::first_key(std::int32_t row) const noexcept {
  const std::int32_t position = positions[static_cast<std::size_t>(row)];
  if (shape.window == 0) return 0;
  return std::max(0, position - static_cast<std::int32_t>(shape.window) + 1);
}

std::int64_t Problem::k_at(std::int32_t row, std::int32_t position,
                           std::int32_t kv_head) const noexcept {
  const Cell cell = cell_of(*this, row, position);
  return cell.slot * k_slot_stride + cell.index * k_position_stride + kv_head * k_head_stride;
}

std::int64_t Problem::v_at(std::int32_t row, std::int32_t position,
                           std::int32_t kv_head) const noexcept {
  const Cell cell = cell_of(*this, row, position);
  return cell.slot * v_slot_stride + cell.index * v_position_stride + kv_head * v_head_stride;
}

std::size_t Problem::out_elems() const noexcept {
  if (rows == 0) return 0;
  return static_cast<std::size_t>(out_at(rows - 1, heads() - 1) + head_dim());
}

Problem Problem::take(const std::vector<std::int32_t>& chosen) const {
  Problem taken = *this;
  taken.rows = static_cast<std::int32_t>(chosen.size());
  taken.q.assign(chosen.size() * static_cast<std::size_t>(q_row_stride), 0);
  taken.positions.clear();
  taken.last_keys.clear();
  taken.slots.clear();
  taken.last_keys.clear();
  taken.offsets.clear();
  taken.max_keys = 0;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const auto from = q.begin() + chosen[i] * q_row_stride;
    std::copy(from, from + q_row_stride,
              taken.q.begin() + static_cast<std::int64_t>(i) * q_row_stride);
    const auto row = static_cast<std::size_t>(chosen[i]);
    taken.positions.push_back(positions[row]);
    taken.slots.push_back(slots[row]);
    taken.last_keys.push_back(last_key(chosen[i]));
    taken.max_keys = std::max(taken.max_keys, taken.last_keys.back() + 1);
  }
  if (is_prefill()) taken.offsets = first_rows(taken.rows + 1);
  return taken;
}

Problem Problem::cut(std::int32_t at) const {
  Problem cut_there = *this;
  const auto behind = std::lower_bound(cut_there.offsets.begin(), cut_there.offsets.end(), at);
  if (behind != cut_there.offsets.end() && *behind != at) cut_there.offsets.insert(behind, at);
  return cut_there;
}

std::vector<std::int32_t> first_rows(std::int32_t rows) {
  std::vector<std::int32_t> all(static_cast<std::size_t>(rows));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

WindowRowsDecodeArgs ProblemArgs::decode() const noexcept {
  WindowRowsDecodeArgs args;
  args.attention = attention;
  args.cache = cache;
  args.positions = positions;
  args.slots = slots;
  args.workspace = workspace;
  args.workspace_bytes = workspace_bytes;
  args.max_keys = max_keys;
  return args;
}

WindowRowsPrefillArgs ProblemArgs::prefill() const noexcept {
  WindowRowsPrefillArgs args;
  args.attention = attention;
  args.cache = cache;
  args.positions = positions;
  args.slots = slots;
  args.offsets = offsets;
  args.hi = hi;
  args.sequences = sequences;
  args.max_keys = max_keys;
  return args;
}

ProblemArgs Problem::sizes() const noexcept {
  ProblemArgs args;
  args.attention.q_row_stride = q_row_stride;
  args.attention.q_head_stride = q_head_stride;
  args.cache.k_slot_stride = k_slot_stride;
  args.cache.k_position_stride = k_position_stride;
  args.cache.k_head_stride = k_head_stride;
  args.cache.v_slot_stride = v_slot_stride;
  args.cache.v_position_stride = v_position_stride;
  args.cache.v_head_stride = v_head_stride;
  args.attention.out_row_stride = out_row_stride;
  args.attention.out_head_stride = out_head_stride;
  args.cache.page_table_stride = page_table_stride;
  args.attention.rows = rows;
  args.cache.kv_heads = kv_heads;
  args.cache.slots = slot_count;
  args.cache.length = length;
  // Pages that no table names might as well not be there.
  for (const std::int32_t page : page_table)
    args.cache.pages = std::max(args.cache.pages, page + 1);
  args.max_keys = max_keys;
  args.attention.scale = scale;
  args.attention.softcap = softcap;
  return args;
}

}  // namespace broach::contract::window_rows
