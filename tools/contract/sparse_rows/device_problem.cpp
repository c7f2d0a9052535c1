#include "tools/contract/sparse_rows/device_problem.hpp"

#include <algorithm>
#include <span>
#include <type_traits>
#include <utility>

#include "tools/contract/harness/number.hpp"

namespace broach::contract::sparse_rows {
namespace {

// What no row selected: a NaN in either type.
constexpr std::uint16_t kUnselected = 0x7fff;

/// K and V as a layout has them, and the page table.
struct Cache {
  std::vector<std::uint16_t> k, v;
  std::vector<std::int32_t> table;
  std::int32_t slots = 0, cells = 0, pages = 0, slot_pages = 0;
};

Cache lay_out(const Problem& problem) {
  const Recipe& recipe = problem.recipe;
  const KvLayout layout = recipe.shape.kv_layout;
  const auto unit = static_cast<std::int32_t>(layout.length);
  const bool paged = layout.kind == KvLayoutKind::kPaged;
  const std::size_t row_elems = static_cast<std::size_t>(recipe.kv_heads) * problem.head_dim();
  Cache cache;
  cache.slots = recipe.streams + recipe.slot_shift;
  cache.cells = layout.kind == KvLayoutKind::kLinear ? recipe.positions : unit;
  cache.slot_pages = paged ? (recipe.positions + unit - 1) / unit : 0;
  cache.pages = cache.slots * cache.slot_pages;
  for (std::int32_t i = 0; i < cache.pages; ++i) {
    cache.table.push_back(static_cast<std::int32_t>((std::int64_t{i} * 7919 + 3) % cache.pages));
  }
  const auto held = static_cast<std::size_t>(paged ? cache.pages : cache.slots);
  cache.k.assign(held * static_cast<std::size_t>(cache.cells) * row_elems, kUnselected);
  cache.v = cache.k;
  for (std::size_t row = 0; row < recipe.rows.size(); ++row) {
    const std::int32_t slot = recipe.rows[row].stream + recipe.slot_shift;
    for (const std::int32_t key : problem.keys(row)) {
      const std::int32_t holder =
          paged ? cache.table[static_cast<std::size_t>(slot * cache.slot_pages + key / unit)]
                : slot;
      const std::int32_t index = layout.kind == KvLayoutKind::kLinear ? key : key % unit;
      const std::size_t to =
          (static_cast<std::size_t>(holder) * static_cast<std::size_t>(cache.cells) +
           static_cast<std::size_t>(index)) *
          row_elems;
      const std::size_t from = problem.kv_at(recipe.rows[row].stream, key, 0);
      for (std::size_t i = 0; i < row_elems; ++i) {
        cache.k[to + i] = round_to(static_cast<double>(problem.k[from + i]), recipe.shape.dtype);
        cache.v[to + i] = round_to(static_cast<double>(problem.v[from + i]), recipe.shape.dtype);
      }
    }
  }
  return cache;
}

/// What a launch is told of its rows, one entry each; ids are `widest` apart.
struct Rows {
  std::vector<std::int32_t> positions, slots, counts, blocks;
  std::size_t widest = 1;
};

Rows rows_of(const Problem& problem) {
  const Recipe& recipe = problem.recipe;
  Rows rows;
  for (const auto& blocks : problem.blocks) rows.widest = std::max(rows.widest, blocks.size());
  for (std::size_t row = 0; row < recipe.rows.size(); ++row) {
    const std::vector<std::int32_t>& blocks = problem.blocks[row];
    rows.positions.push_back(recipe.rows[row].position);
    rows.slots.push_back(recipe.rows[row].stream + recipe.slot_shift);
    rows.counts.push_back(static_cast<std::int32_t>(blocks.size()));
    rows.blocks.insert(rows.blocks.end(), blocks.begin(), blocks.end());
    rows.blocks.resize((row + 1) * rows.widest, -1);
  }
  return rows;
}

}  // namespace

Result<DeviceProblem> DeviceProblem::upload(runtime::Device& device, const Problem& problem,
                                            std::size_t workspace_bytes) {
  const Recipe& recipe = problem.recipe;
  const auto d = static_cast<std::int64_t>(problem.head_dim());
  const Cache cache = lay_out(problem);
  const Rows rows = rows_of(problem);
  const bool f32 = recipe.shape.q_dtype == QueryDtype::kF32;
  std::vector<std::uint16_t> q16;
  if (!f32) {
    for (const float value : problem.q) {
      q16.push_back(round_to(static_cast<double>(value), recipe.shape.dtype));
    }
  }

  DeviceProblem made;
  SparseRowsArgs& args = made.args_;
  Result<void> ready;
  const auto put = [&](const auto& from, auto& pointer) {
    if (!ready || from.empty()) return;
    auto copy = DeviceBytes::copy_of(device, std::as_bytes(std::span(from)));
    if (!copy) {
      ready = copy.error();
      return;
    }
    pointer = static_cast<std::remove_reference_t<decltype(pointer)>>(copy->data());
    made.copies_.push_back(std::move(*copy));
  };
  if (f32) {
    put(problem.q, args.attention.q);
  } else {
    put(q16, args.attention.q);
  }
  put(cache.k, args.cache.k);
  put(cache.v, args.cache.v);
  put(cache.table, args.cache.page_table);
  put(rows.positions, args.positions);
  put(rows.slots, args.slots);
  put(rows.counts, args.block_counts);
  put(rows.blocks, args.blocks);
  if (!ready) return ready.error();
  auto out = GuardedBytes::of_size(device, problem.q.size() * (f32 ? 4 : 2));
  if (!out) return out.error();
  auto workspace = GuardedBytes::of_size(device, workspace_bytes);
  if (!workspace) return workspace.error();
  made.out_.emplace(std::move(*out));
  made.workspace_.emplace(std::move(*workspace));

  args.attention.out = made.out_->data();
  args.attention.q_head_stride = args.attention.out_head_stride = d;
  args.attention.q_row_stride = args.attention.out_row_stride = problem.heads() * d;
  args.attention.rows = static_cast<std::int32_t>(recipe.rows.size());
  args.attention.scale = recipe.scale;
  args.cache.k_head_stride = args.cache.v_head_stride = d;
  args.cache.k_position_stride = args.cache.v_position_stride = recipe.kv_heads * d;
  args.cache.k_slot_stride = args.cache.v_slot_stride = cache.cells * args.cache.k_position_stride;
  args.cache.page_table_stride = cache.slot_pages;
  args.cache.kv_heads = recipe.kv_heads;
  args.cache.slots = cache.slots;
  args.cache.length = cache.slot_pages > 0 ? cache.slot_pages * cache.cells : cache.cells;
  args.cache.pages = cache.pages;
  args.block_row_stride = static_cast<std::int64_t>(rows.widest);
  args.workspace = made.workspace_->data();
  args.workspace_bytes = workspace_bytes;
  return made;
}

Result<void> DeviceProblem::poison(Poison poison) {
  if (auto filled = out_->poison(poison); !filled) return filled;
  return workspace_->poison(poison);
}

Result<std::vector<std::byte>> DeviceProblem::outputs() const {
  if (auto sound = out_->check_guard("outputs"); !sound) return sound.error();
  if (auto sound = workspace_->check_guard("workspace"); !sound) return sound.error();
  std::vector<std::byte> bytes(out_->size());
  if (auto read = out_->read(bytes); !read) return read.error();
  return bytes;
}

}  // namespace broach::contract::sparse_rows
