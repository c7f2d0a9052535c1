#pragma once

#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernel_src/window_rows/params.h"
#include "runtime/device.hpp"
#include "runtime/host/host_device.hpp"
#include "runtime/window_rows/chunk256_launch.hpp"
#include "specializer/compilers.hpp"
#include "specializer/plan.hpp"
#include "specializer/window_rows/shape.hpp"
#include "tests/support/catch.hpp"

namespace broach::test {

/// Kernels of this process, compiled for the host once each.
class HostKernels {
 public:
  static HostKernels& instance() {
    static HostKernels kernels;
    return kernels;
  }

  struct Kernel {
    specializer::Plan plan;
    std::unique_ptr<runtime::Module> module;
  };

  const Kernel& of(const WindowRowsShape& shape, const specializer::Variant& variant) {
    std::string name = specializer::to_json(shape) + variant.control;
    if (variant.generic == Switch::kOn) name += " generic";
    Kernel& kernel = kernels_[name];
    if (kernel.module != nullptr) return kernel;
    auto plan = specializer::plan(shape, device_->target(), variant);
    if (!plan) FAIL(plan.error().message);
    auto compiled = compilers_.compile(*plan);
    if (!compiled) FAIL(compiled.error().message << '\n' << compiled.error().detail);
    std::vector<std::string> functions;
    for (const auto& entry : plan->entries) functions.push_back(entry.function);
    auto module = device_->load(compiled->binary, functions);
    if (!module) FAIL(module.error().message);
    kernel.plan = std::move(*plan);
    kernel.module = std::move(*module);
    return kernel;
  }

 private:
  static specializer::CompilersOptions options() {
    specializer::CompilersOptions options;
    const char* path = std::getenv("PATH");
    options.search_path = path == nullptr ? "/usr/bin:/bin" : path;
    options.jobs = 2;
    return options;
  }

  std::shared_ptr<runtime::Device> device_ = runtime::open_host_device();
  specializer::Compilers compilers_{options()};
  std::map<std::string, Kernel> kernels_;
};

/// Launches a decode on the host and gives the launch's own answer.
///
/// `params` has its tensors set; window, ratio, layout, chunks and workspace are filled in here.
inline Result<void> try_decode(const WindowRowsShape& shape, BroachWindowRowsDecode params,
                               std::int32_t max_keys, const specializer::Variant& variant = {}) {
  const HostKernels::Kernel& kernel = HostKernels::instance().of(shape, variant);
  params.window = static_cast<int>(shape.window);
  params.gqa_ratio = static_cast<int>(shape.gqa_ratio);
  params.layout = static_cast<int>(shape.kv_layout.kind);
  params.layout_length = static_cast<int>(shape.kv_layout.length);
  const std::uint32_t chunks = runtime::chunk256_max_chunks(shape.window, max_keys);
  params.max_partials = static_cast<int>(chunks);
  // NaN in every float: a partial that is read but was not written shows.
  std::vector<std::byte> workspace(
      runtime::chunk256_workspace_bytes(shape, params.attention.rows, params.cache.kv_heads,
                                        max_keys),
      std::byte{0xff});
  params.workspace = workspace.data();
  const auto kv_heads = static_cast<std::uint32_t>(params.cache.kv_heads);
  const auto rows = static_cast<std::uint32_t>(params.attention.rows);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& entry = kernel.plan.entries[i];
    auto function = kernel.module->function(entry.function);
    if (!function) return function.error();
    runtime::LaunchConfig config;
    config.grid[0] = i == 0 ? chunks : kv_heads * shape.gqa_ratio;
    config.grid[1] = i == 0 ? kv_heads : rows;
    config.grid[2] = i == 0 ? rows : 1;
    config.block_threads = entry.block_threads;
    config.params = &params;
    config.params_bytes = sizeof params;
    if (auto launched = (*function)->launch(config); !launched) return launched;
  }
  return {};
}

}  // namespace broach::test
