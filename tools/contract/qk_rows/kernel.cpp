#include "tools/contract/qk_rows/kernel.hpp"

#include <utility>

#include "runtime/qk_rows/args.hpp"
#include "specializer/qk_rows/shape.hpp"
#include "tools/contract/qk_rows/device_problem.hpp"

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
  auto uploaded = DeviceProblem::upload(*bench_.device, problem);
  if (!uploaded) return uploaded.error();
  if (auto filled = uploaded->poison(poison); !filled) return filled.error();
  const BroachQkRows params = runtime::qk_rows_params(problem.recipe.shape, uploaded->args());
  const specializer::KernelEntry& entry = plan_.entries.front();
  auto function = loaded_.module->function(entry.function);
  if (!function) return function.error();
  runtime::LaunchConfig config;
  config.grid[0] = static_cast<std::uint32_t>(params.rows);
  config.grid[1] = splits;
  config.block[0] = entry.block_threads;
  config.params = &params;
  config.params_bytes = sizeof params;
  if (auto launched = (*function)->launch(config); !launched) return launched.error();
  if (auto done = bench_.device->synchronize(nullptr); !done) return done.error();
  return uploaded->outputs(poison);
}

}  // namespace broach::contract::qk_rows
