#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "broach/runtime.hpp"
#include "runtime/runtime_state.hpp"
#include "specializer/plan.hpp"
#include "specializer/window_rows/shape.hpp"
#include "tests/support/temp_dir.hpp"
#include "tools/contract/harness/in_parallel.hpp"
#include "tools/contract/window_rows/kernel.hpp"

namespace broach::test {

/// A runtime over a cache of its own, and the bench that the contract takes from it.
struct OpenedRuntime {
  explicit OpenedRuntime(const std::string& device) {
    Options options = Options::from_environment();
    options.cache_directories = {dir.path().string()};
    options.device = device;
    auto created = Runtime::create(std::move(options));
    if (!created) {
      why = created.error().message;
      return;
    }
    runtime = std::make_unique<Runtime>(std::move(*created));
    bench = {runtime->state().device.get(), &runtime->state().forge};
  }

  TempDir dir;
  std::unique_ptr<Runtime> runtime;
  contract::Bench bench;
  std::string why;
};

/// Compiles shapes' kernels side by side. What fails here fails again, and is judged, where it is
/// loaded.
inline void compile_ahead(const contract::Bench& bench, const std::vector<WindowRowsShape>& shapes,
                          const specializer::Variant& variant = {}) {
  std::map<std::string, specializer::Plan> plans;  // One generic kernel serves several shapes.
  for (const WindowRowsShape& shape : shapes) {
    auto plan = specializer::plan(shape, bench.device->target(), variant);
    if (plan) plans.try_emplace(plan->shape_json, std::move(*plan));
  }
  std::vector<const specializer::Plan*> each;
  for (const auto& [shape, plan] : plans) each.push_back(&plan);
  contract::in_parallel(each.size(), 0, [&](std::size_t i) {
    static_cast<void>(bench.forge->obtain(*each[i], specializer::OnMiss::kCompile));
  });
}

}  // namespace broach::test
