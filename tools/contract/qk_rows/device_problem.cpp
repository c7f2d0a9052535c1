#include "tools/contract/qk_rows/device_problem.hpp"

#include <algorithm>
#include <iterator>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

namespace broach::contract::qk_rows {

Result<DeviceProblem> DeviceProblem::upload(runtime::Device& device, const Problem& problem) {
  const Recipe& recipe = problem.recipe;
  const std::size_t d = problem.head_dim();
  const std::size_t row_elems = problem.kv_heads() * d;
  const KvLayout layout = recipe.shape.kv_layout;
  const auto unit = static_cast<std::int32_t>(layout.length);
  const bool paged = layout.kind == KvLayoutKind::kPaged;
  const std::int32_t slots = recipe.streams + recipe.slot_shift;
  const std::int32_t cells = layout.kind == KvLayoutKind::kLinear ? recipe.length : unit;
  const std::int32_t slot_pages = paged ? (recipe.length + unit - 1) / unit : 0;
  DeviceProblem made;
  made.rows_ = recipe.rows.size();
  made.row_queries_ = problem.q_heads() * d;
  made.row_keys_ = row_elems;
  std::vector<std::int32_t> table;
  for (std::int32_t i = 0; i < slots * slot_pages; ++i) {
    table.push_back(static_cast<std::int32_t>((std::int64_t{i} * 7 + 3) % (slots * slot_pages)));
  }
  std::vector<std::int32_t> positions, row_slots;
  for (const RowAt& at : recipe.rows) {
    positions.push_back(at.position);
    row_slots.push_back(at.stream + recipe.slot_shift);
    std::int32_t holder = row_slots.back();
    if (paged) {
      holder = table[static_cast<std::size_t>(holder * slot_pages + at.position / unit)];
    }
    const std::int32_t index =
        layout.kind == KvLayoutKind::kLinear ? at.position : at.position % unit;
    made.cell_of_row_.push_back(static_cast<std::size_t>(holder) * static_cast<std::size_t>(cells) +
                                static_cast<std::size_t>(index));
  }

  QkRowsArgs& args = made.args_;
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
  put(problem.q, args.q);
  put(problem.k, args.k);
  put(problem.v, args.v);
  put(problem.inverse, args.inverse_frequencies);
  if (recipe.shape.norm == HeadNorm::kRms) {
    put(problem.q_norm, args.q_norm);
    put(problem.k_norm, args.k_norm);
  }
  const auto elems = static_cast<std::int64_t>(d);
  if (recipe.shape.q_scale == Switch::kOn) {
    put(problem.scale, args.q_scale);
    args.q_scale_head_stride = elems;
  }
  put(positions, args.positions);
  put(row_slots, args.slots);
  put(table, args.cache.page_table);
  if (!ready) return ready.error();
  const auto held = static_cast<std::size_t>(paged ? slots * slot_pages : slots);
  const std::size_t cache_elems = held * static_cast<std::size_t>(cells) * row_elems;
  for (const std::size_t count : {problem.q.size(), cache_elems, cache_elems}) {
    auto memory = GuardedBytes::of_size(device, count * 2);
    if (!memory) return memory.error();
    made.written_.push_back(std::move(*memory));
  }
  args.q_out = made.written_[0].data();
  args.cache.k = made.written_[1].data();
  args.cache.v = made.written_[2].data();
  args.q_head_stride = args.k_head_stride = args.v_head_stride = args.q_out_head_stride = elems;
  args.q_row_stride = args.q_out_row_stride = static_cast<std::int64_t>(made.row_queries_);
  args.k_row_stride = args.v_row_stride = static_cast<std::int64_t>(row_elems);
  args.cache.k_head_stride = args.cache.v_head_stride = elems;
  args.cache.k_position_stride = args.cache.v_position_stride =
      static_cast<std::int64_t>(row_elems);
  args.cache.k_slot_stride = args.cache.v_slot_stride = cells * args.cache.k_position_stride;
  args.cache.page_table_stride = slot_pages;
  args.cache.kv_heads = recipe.kv_heads;
  args.cache.slots = slots;
  args.cache.length = paged ? slot_pages * unit : cells;
  args.cache.pages = slots * slot_pages;
  args.rows = static_cast<std::int32_t>(recipe.rows.size());
  args.epsilon = recipe.epsilon;
  return made;
}

Result<void> DeviceProblem::poison(Poison poison) {
  for (GuardedBytes& memory : written_) {
    if (auto filled = memory.poison(poison); !filled) return filled;
  }
  return {};
}

Result<std::vector<std::uint16_t>> DeviceProblem::outputs(Poison poison) const {
  constexpr std::string_view kNames[] = {"queries", "K cache", "V cache"};
  std::vector<std::uint16_t> read[std::size(kNames)];
  for (std::size_t i = 0; i < std::size(kNames); ++i) {
    if (auto sound = written_[i].check_guard(kNames[i]); !sound) return sound.error();
    read[i].resize(written_[i].size() / 2);
    if (auto done = written_[i].read(std::as_writable_bytes(std::span(read[i]))); !done) {
      return done.error();
    }
  }
  const auto& [q, k, v] = read;
  std::vector<std::uint16_t> out;
  std::vector<bool> owned(k.size(), false);
  for (std::size_t row = 0; row < rows_; ++row) {
    const auto take = [&](const std::vector<std::uint16_t>& from, std::size_t at,
                          std::size_t count) {
      const auto first = from.begin() + static_cast<std::ptrdiff_t>(at);
      out.insert(out.end(), first, first + static_cast<std::ptrdiff_t>(count));
    };
    const std::size_t cell = cell_of_row_[row] * row_keys_;
    take(q, row * row_queries_, row_queries_);
    take(k, cell, row_keys_);
    take(v, cell, row_keys_);
    std::fill_n(owned.begin() + static_cast<std::ptrdiff_t>(cell), row_keys_, true);
  }
  for (std::size_t i = 0; i < k.size(); ++i) {
    const auto untouched = static_cast<std::uint16_t>(poison);
    if (owned[i] || (k[i] == untouched && v[i] == untouched)) continue;
    return Error{ErrorCode::kInternal,
                 "a cell of the cache that no row of the launch owns was written", ""};
  }
  return out;
}

}  // namespace broach::contract::qk_rows
