#include "tools/contract/sparse_rows/kernel.hpp"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "kernel_src/sparse_rows/params.h"
#include "specializer/sparse_rows/shape.hpp"
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

/// Copies on the device, kept as long as a launch.
class Uploads {
 public:
  explicit Uploads(runtime::Device& device) : device_(device) {}

  template <class T, class Pointer>
  Result<void> put(const std::vector<T>& from, Pointer& pointer) {
    if (from.empty()) return {};
    auto copy = DeviceBytes::copy_of(device_, std::as_bytes(std::span(from)));
    if (!copy) return copy.error();
    pointer = static_cast<Pointer>(copy->data());
    copies_.push_back(std::move(*copy));
    return {};
  }

 private:
  runtime::Device& device_;
  std::vector<DeviceBytes> copies_;
};

}  // namespace

Result<Kernel> Kernel::load(const Bench& bench, const SparseRowsShape& shape,
                            const specializer::Variant& variant) {
  auto served = specializer::serve(shape, bench.device->target());
  if (!served) return served.error();
  auto plan = specializer::plan(*served, variant);
  if (!plan) return plan.error();
  auto loaded = contract::load(bench, *plan);
  if (!loaded) return loaded.error();
  Kernel kernel;
  kernel.bench_ = bench;
  kernel.shape_ = specializer::typed_of<SparseRowsShape>(served->shape());
  kernel.plan_ = std::move(*plan);
  kernel.loaded_ = std::move(*loaded);
  return kernel;
}

Result<std::vector<std::byte>> Kernel::run(const Problem& problem, Poison poison,
                                           Splits splits) const {
  const Recipe& recipe = problem.recipe;
  const auto d = static_cast<long long>(problem.head_dim());
  const auto rows = static_cast<std::uint32_t>(recipe.rows.size());
  const Cache cache = lay_out(problem);
  std::size_t widest = 1;
  for (const auto& blocks : problem.blocks) widest = std::max(widest, blocks.size());
  std::vector<std::int32_t> positions, slots, counts, blocks;
  for (std::size_t row = 0; row < rows; ++row) {
    positions.push_back(recipe.rows[row].position);
    slots.push_back(recipe.rows[row].stream + recipe.slot_shift);
    counts.push_back(static_cast<std::int32_t>(problem.blocks[row].size()));
    blocks.insert(blocks.end(), problem.blocks[row].begin(), problem.blocks[row].end());
    blocks.resize((row + 1) * widest, -1);
  }
  std::vector<std::uint16_t> q16;
  const bool f32 = recipe.shape.q_dtype == QueryDtype::kF32;
  if (!f32) {
    for (const float value : problem.q) {
      q16.push_back(round_to(static_cast<double>(value), recipe.shape.dtype));
    }
  }

  BroachSparseRows p{};
  Uploads uploads(*bench_.device);
  Result<void> ready;
  const auto put = [&](const auto& from, auto& pointer) {
    if (ready) ready = uploads.put(from, pointer);
  };
  if (f32) {
    put(problem.q, p.attention.q);
  } else {
    put(q16, p.attention.q);
  }
  put(cache.k, p.cache.k);
  put(cache.v, p.cache.v);
  put(cache.table, p.cache.page_table);
  put(positions, p.positions);
  put(slots, p.slots);
  put(counts, p.block_counts);
  put(blocks, p.blocks);
  if (!ready) return ready.error();
  const std::size_t out_bytes = problem.q.size() * (f32 ? 4 : 2);
  auto out = GuardedBytes::of_size(*bench_.device, out_bytes);
  if (!out) return out.error();
  const auto parts = static_cast<std::size_t>(recipe.shape.part_count);
  auto workspace = GuardedBytes::of_size(
      *bench_.device, problem.q.size() / problem.head_dim() * parts * (problem.head_dim() + 2) * 4);
  if (!workspace) return workspace.error();
  if (auto filled = out->poison(poison); !filled) return filled.error();
  if (auto filled = workspace->poison(poison); !filled) return filled.error();

  p.attention.out = out->data();
  p.attention.q_head_stride = p.attention.out_head_stride = d;
  p.attention.q_row_stride = p.attention.out_row_stride = problem.heads() * d;
  p.attention.rows = static_cast<int>(rows);
  p.attention.scale = recipe.scale;
  p.cache.k_head_stride = p.cache.v_head_stride = d;
  p.cache.k_position_stride = p.cache.v_position_stride = recipe.kv_heads * d;
  p.cache.k_slot_stride = p.cache.v_slot_stride = cache.cells * p.cache.k_position_stride;
  p.cache.page_table_stride = cache.slot_pages;
  p.cache.kv_heads = recipe.kv_heads;
  p.cache.slots = cache.slots;
  p.cache.length = cache.slot_pages > 0 ? cache.slot_pages * cache.cells : cache.cells;
  p.cache.pages = cache.pages;
  p.workspace = workspace->data();
  p.count_row_stride = 1;
  p.block_row_stride = static_cast<long long>(widest);
  p.compress_ratio = static_cast<int>(recipe.shape.compress_ratio);
  p.part_count = static_cast<int>(recipe.shape.part_count);
  p.gqa_ratio = static_cast<int>(recipe.shape.gqa_ratio);
  p.layout = static_cast<int>(recipe.shape.kv_layout.kind);
  p.layout_length = static_cast<int>(recipe.shape.kv_layout.length);
  const bool mma = recipe.shape.tile == SparseTile::kMma;
  p.splits = mma || splits == Splits::kOne ? 1 : p.part_count;

  const auto launch = [&](std::size_t entry, std::uint32_t x, std::uint32_t y,
                          std::uint32_t z) -> Result<void> {
    const specializer::KernelEntry& of = plan_.entries[entry];
    auto function = loaded_.module->function(of.function);
    if (!function) return function.error();
    runtime::LaunchConfig config;
    config.grid[0] = x;
    config.grid[1] = y;
    config.grid[2] = z;
    config.block[0] = of.block_threads;
    config.dynamic_shared_bytes = of.dynamic_shared_bytes;
    config.params = &p;
    config.params_bytes = sizeof p;
    return (*function)->launch(config);
  };
  const auto kv_heads = static_cast<std::uint32_t>(recipe.kv_heads);
  const std::uint32_t group = mma ? plan_.entries[0].block_rows : 1;
  auto launched =
      launch(0, (rows + group - 1) / group, kv_heads, static_cast<std::uint32_t>(p.splits));
  if (launched && p.splits > 1) {
    launched = launch(1, rows, static_cast<std::uint32_t>(problem.heads()), 1);
  }
  if (!launched) return launched.error();
  if (auto done = bench_.device->synchronize(nullptr); !done) return done.error();
  if (auto sound = out->check_guard("outputs"); !sound) return sound.error();
  if (auto sound = workspace->check_guard("workspace"); !sound) return sound.error();
  std::vector<std::byte> bytes(out_bytes);
  if (auto read = out->read(bytes); !read) return read.error();
  return bytes;
}

}  // namespace broach::contract::sparse_rows
