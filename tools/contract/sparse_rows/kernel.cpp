#include "tools/contract/sparse_rows/kernel.hpp"

#include <utility>

#include "runtime/sparse_rows/args.hpp"
#include "specializer/sparse_rows/shape.hpp"
#include "tools/contract/sparse_rows/device_problem.hpp"

namespace broach::contract::sparse_rows {

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
  const SparseRowsShape& shape = problem.recipe.shape;
  // kernel_src/sparse_rows/scalar.cuh's Partials, whether this launch leaves any or not.
  const std::size_t partials =
      problem.q.size() / problem.head_dim() * shape.part_count * (problem.head_dim() + 2) * 4;
  auto uploaded = DeviceProblem::upload(*bench_.device, problem, partials);
  if (!uploaded) return uploaded.error();
  if (auto filled = uploaded->poison(poison); !filled) return filled.error();
  BroachSparseRows params = runtime::sparse_rows_params(shape, uploaded->args());
  const bool mma = shape.tile == SparseTile::kMma;
  params.splits = mma || splits == Splits::kOne ? 1 : params.part_count;

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
    config.params = &params;
    config.params_bytes = sizeof params;
    return (*function)->launch(config);
  };
  const auto rows = static_cast<std::uint32_t>(problem.recipe.rows.size());
  const auto kv_heads = static_cast<std::uint32_t>(problem.recipe.kv_heads);
  const std::uint32_t group = mma ? plan_.entries[0].block_rows : 1;
  auto launched =
      launch(0, (rows + group - 1) / group, kv_heads, static_cast<std::uint32_t>(params.splits));
  if (launched && params.splits > 1) {
    launched = launch(1, rows, static_cast<std::uint32_t>(problem.heads()), 1);
  }
  if (!launched) return launched.error();
  if (auto done = bench_.device->synchronize(nullptr); !done) return done.error();
  return uploaded->outputs();
}

}  // namespace broach::contract::sparse_rows
