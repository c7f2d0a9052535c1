#include "tools/contract/qk_rows/kernel.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "kernel_src/qk_rows/params.h"
#include "specializer/qk_rows/shape.hpp"

namespace broach::contract::qk_rows {

Result<Kernel> Kernel::load(const Bench& bench, const QkRowsShape& shape,
                            const specializer::Variant& variant) {
  auto served = specializer::serve(shape, bench.device->target());
  if (!served) return served.error();
  auto plan = specializer::plan(*served, variant);
  if (!plan) return plan.error();
  auto loaded = contract::load(bench, *plan);
  if (!loaded) return loaded.error();
  Kernel kernel;
  kernel.bench_ = bench;
  kernel.shape_ = specializer::typed_of<QkRowsShape>(served->shape());
  kernel.plan_ = std::move(*plan);
  kernel.loaded_ = std::move(*loaded);
  return kernel;
}

Result<std::vector<std::uint16_t>> Kernel::run(const Problem& problem, Poison poison,
                                               std::uint32_t splits) const {
  const Recipe& recipe = problem.recipe;
  const std::size_t d = problem.head_dim();
  const std::size_t row_elems = problem.kv_heads() * d;
  const KvLayout layout = recipe.shape.kv_layout;
  const auto unit = static_cast<std::int32_t>(layout.length);
  const bool paged = layout.kind == KvLayoutKind::kPaged;
  const std::int32_t slots = recipe.streams + recipe.slot_shift;
  const std::int32_t cells = layout.kind == KvLayoutKind::kLinear ? recipe.length : unit;
  const std::int32_t slot_pages = paged ? (recipe.length + unit - 1) / unit : 0;
  std::vector<std::int32_t> table;
  for (std::int32_t i = 0; i < slots * slot_pages; ++i) {
    table.push_back((i * 7 + 3) % (slots * slot_pages));
  }
  std::vector<std::int32_t> positions, row_slots;
  std::vector<std::size_t> cell_of_row;
  for (const RowAt& at : recipe.rows) {
    positions.push_back(at.position);
    row_slots.push_back(at.stream + recipe.slot_shift);
    std::int32_t holder = row_slots.back();
    if (paged) {
      holder = table[static_cast<std::size_t>(holder * slot_pages + at.position / unit)];
    }
    const std::int32_t index =
        layout.kind == KvLayoutKind::kLinear ? at.position : at.position % unit;
    cell_of_row.push_back(static_cast<std::size_t>(holder) * static_cast<std::size_t>(cells) +
                          static_cast<std::size_t>(index));
  }

  BroachQkRows p{};
  std::vector<DeviceBytes> copies;
  Result<void> ready;
  const auto put = [&](const auto& from, auto& pointer) {
    if (!ready || from.empty()) return;
    auto copy = DeviceBytes::copy_of(*bench_.device, std::as_bytes(std::span(from)));
    if (!copy) {
      ready = copy.error();
      return;
    }
    pointer = static_cast<std::remove_reference_t<decltype(pointer)>>(copy->data());
    copies.push_back(std::move(*copy));
  };
  put(problem.q, p.q);
  put(problem.k, p.k);
  put(problem.v, p.v);
  put(problem.inverse, p.inverse_frequencies);
  put(problem.q_norm, p.q_norm);
  put(problem.k_norm, p.k_norm);
  put(problem.scale, p.q_scale);
  put(positions, p.positions);
  put(row_slots, p.slots);
  put(table, p.cache.page_table);
  if (!ready) return ready.error();
  const auto held = static_cast<std::size_t>(paged ? slots * slot_pages : slots);
  const std::size_t cache_elems = held * static_cast<std::size_t>(cells) * row_elems;
  std::vector<GuardedBytes> written;  // q, k, v
  for (const std::size_t elems : {problem.q.size(), cache_elems, cache_elems}) {
    auto memory = GuardedBytes::of_size(*bench_.device, elems * 2);
    if (!memory) return memory.error();
    if (auto filled = memory->poison(poison); !filled) return filled.error();
    written.push_back(std::move(*memory));
  }
  p.q_out = written[0].data();
  p.cache.k = written[1].data();
  p.cache.v = written[2].data();
  const auto elems = static_cast<long long>(d);
  p.q_head_stride = p.k_head_stride = p.v_head_stride = p.q_out_head_stride = elems;
  p.q_scale_head_stride = elems;
  p.q_row_stride = p.q_out_row_stride = static_cast<long long>(problem.q_heads() * d);
  p.k_row_stride = p.v_row_stride = static_cast<long long>(row_elems);
  p.cache.k_head_stride = p.cache.v_head_stride = elems;
  p.cache.k_position_stride = p.cache.v_position_stride = static_cast<long long>(row_elems);
  p.cache.k_slot_stride = p.cache.v_slot_stride = cells * p.cache.k_position_stride;
  p.cache.page_table_stride = slot_pages;
  p.cache.kv_heads = recipe.kv_heads;
  p.cache.slots = slots;
  p.cache.length = paged ? slot_pages * unit : cells;
  p.cache.pages = slots * slot_pages;
  p.rows = static_cast<int>(recipe.rows.size());
  p.epsilon = recipe.epsilon;
  p.gqa_ratio = static_cast<int>(recipe.shape.gqa_ratio);
  p.rope_dim = static_cast<int>(recipe.shape.rope_dim);
  p.layout = static_cast<int>(layout.kind);
  p.layout_length = unit;

  const specializer::KernelEntry& entry = plan_.entries.front();
  auto function = loaded_.module->function(entry.function);
  if (!function) return function.error();
  runtime::LaunchConfig config;
  config.grid[0] = static_cast<std::uint32_t>(p.rows);
  config.grid[1] = splits;
  config.block[0] = entry.block_threads;
  config.params = &p;
  config.params_bytes = sizeof p;
  if (auto launched = (*function)->launch(config); !launched) return launched.error();
  if (auto done = bench_.device->synchronize(nullptr); !done) return done.error();

  std::vector<std::uint16_t> q(problem.q.size()), k(cache_elems), v(cache_elems);
  const std::string_view names[] = {"queries", "K cache", "V cache"};
  std::vector<std::uint16_t>* const into[] = {&q, &k, &v};
  for (std::size_t i = 0; i < 3; ++i) {
    if (auto sound = written[i].check_guard(names[i]); !sound) return sound.error();
    if (auto read = written[i].read(std::as_writable_bytes(std::span(*into[i]))); !read) {
      return read.error();
    }
  }
  std::vector<std::uint16_t> out;
  std::vector<bool> owned(cache_elems, false);
  for (std::size_t row = 0; row < recipe.rows.size(); ++row) {
    const auto take = [&](const std::vector<std::uint16_t>& from, std::size_t at,
                          std::size_t count) {
      const auto first = from.begin() + static_cast<std::ptrdiff_t>(at);
      out.insert(out.end(), first, first + static_cast<std::ptrdiff_t>(count));
    };
    take(q, row * problem.q_heads() * d, problem.q_heads() * d);
    take(k, cell_of_row[row] * row_elems, row_elems);
    take(v, cell_of_row[row] * row_elems, row_elems);
    std::fill_n(owned.begin() + static_cast<std::ptrdiff_t>(cell_of_row[row] * row_elems),
                row_elems, true);
  }
  for (std::size_t i = 0; i < cache_elems; ++i) {
    const auto untouched = static_cast<std::uint16_t>(poison);
    if (owned[i] || (k[i] == untouched && v[i] == untouched)) continue;
    return Error{ErrorCode::kInternal,
                 "a cell of the cache that no row of the launch owns was written", ""};
  }
  return out;
}

}  // namespace broach::contract::qk_rows
