#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernel_src/qk_rows/params.h"
#include "kernel_src/sparse_rows/params.h"
#include "qk_rows/names.cuh"
#include "runtime/device.hpp"
#include "runtime/host/host_device.hpp"
#include "specializer/compilers.hpp"
#include "specializer/qk_rows/shape.hpp"
#include "specializer/sparse_rows/shape.hpp"
#include "tests/kernel_src/qk_case.hpp"
#include "tests/kernel_src/sparse_case.hpp"
#include "tests/support/catch.hpp"

namespace broach::test {

inline runtime::Device& rows_host() {
  static const std::shared_ptr<runtime::Device> host = runtime::open_host_device();
  return *host;
}

/// A kernel of a shape, compiled for a device and loaded there.
struct RowsKernel {
  specializer::Plan plan;
  std::unique_ptr<runtime::Module> module;
};

/// The kernel of a shape, compiled once in a process.
template <class Shape>
const RowsKernel& rows_kernel(runtime::Device& device, const Shape& shape,
                              const specializer::Variant& variant = {}) {
  static std::map<std::string, RowsKernel> kernels;
  static specializer::Compilers compilers([] {
    specializer::CompilersOptions options;
    const char* path = std::getenv("PATH");
    options.search_path = path == nullptr ? "/usr/bin:/bin" : path;
    options.jobs = 2;
    return options;
  }());
  auto planned = specializer::plan(shape, device.target(), variant);
  if (!planned) FAIL(planned.error().message);
  RowsKernel& kernel = kernels[std::string(device.name()) + planned->shape_json];
  if (kernel.module != nullptr) return kernel;
  auto compiled = compilers.compile(*planned);
  if (!compiled) FAIL(compiled.error().message << '\n' << compiled.error().detail);
  std::vector<std::string> functions;
  for (const auto& entry : planned->entries) functions.push_back(entry.function);
  auto module = device.load(compiled->binary, functions);
  if (!module) FAIL(module.error().message);
  kernel.plan = *std::move(planned);
  kernel.module = *std::move(module);
  return kernel;
}

/// Copies of a launch's tensors on a device; `fetch` brings the written ones back.
///
/// Owns:    the copies; the vectors outlive it.
class OnDevice {
 public:
  explicit OnDevice(runtime::Device& device) : device_(device) {}
  ~OnDevice() {
    for (const Copy& copy : copies_) device_.free(copy.device);
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

  /// Points a pointer of the launch's parameters to a copy of a vector.
  template <class Pointer, class T>
  void put(Pointer& pointer, std::vector<T>& vector) {
    if (vector.empty()) return;
    const std::size_t bytes = vector.size() * sizeof(T);
    auto memory = device_.allocate(bytes);
    REQUIRE(memory);
    copies_.push_back({*memory, vector.data(), bytes});
    REQUIRE(device_.copy_to_device(*memory, vector.data(), bytes));
    pointer = static_cast<Pointer>(*memory);
  }
  void fetch() {
    for (const Copy& copy : copies_) {
      REQUIRE(device_.copy_to_host(copy.host, copy.device, copy.bytes));
    }
    REQUIRE(device_.synchronize(nullptr));
  }

 private:
  struct Copy {
    void* device;
    void* host;
    std::size_t bytes;
  };
  runtime::Device& device_;
  std::vector<Copy> copies_;
};

template <class Params>
Result<void> launch_rows(const RowsKernel& kernel, std::size_t entry, const Params& params,
                         std::uint32_t x, std::uint32_t y, std::uint32_t z) {
  const auto& of = kernel.plan.entries[entry];
  auto function = kernel.module->function(of.function);
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
}

/// Runs a qk_rows launch whose rows are shared by `splits` blocks each, and leaves the results in
/// its tensors.
inline Result<void> run_qk(QkTensors& t, runtime::Device& device = rows_host(),
                           const specializer::Variant& variant = {}, std::uint32_t splits = 1) {
  const RowsKernel& kernel = rows_kernel(device, t.shape, variant);
  BroachQkRows params = t.params;
  OnDevice copies(device);
  copies.put(params.q, t.q);
  copies.put(params.k, t.k);
  copies.put(params.v, t.v);
  copies.put(params.q_out, t.q_out);
  copies.put(params.inverse_frequencies, t.inverse);
  copies.put(params.q_norm, t.q_norm);
  copies.put(params.k_norm, t.k_norm);
  copies.put(params.q_scale, t.q_scale);
  copies.put(params.positions, t.positions);
  copies.put(params.slots, t.row_slots);
  copies.put(params.cache.k, t.cache_k);
  copies.put(params.cache.v, t.cache_v);
  copies.put(params.cache.page_table, t.table);
  auto launched =
      launch_rows(kernel, 0, params, static_cast<std::uint32_t>(params.rows), splits, 1);
  if (launched) copies.fetch();
  return launched;
}

/// Runs a sparse_rows launch; `splits` as in the parameters (scalar alone).
inline Result<void> run_sparse(const SparseProblem& problem, SparseTensors& t,
                               runtime::Device& device = rows_host(),
                               const specializer::Variant& variant = {}, int splits = 1) {
  const RowsKernel& kernel = rows_kernel(device, problem.shape, variant);
  BroachSparseRows params = t.params;
  params.splits = splits;
  OnDevice copies(device);
  copies.put(params.attention.q, t.q16);
  if (t.f32) copies.put(params.attention.q, t.q32);
  copies.put(params.attention.out, t.out16);
  if (t.f32) copies.put(params.attention.out, t.out32);
  copies.put(params.positions, t.positions);
  copies.put(params.slots, t.slots);
  copies.put(params.block_counts, t.counts);
  copies.put(params.blocks, t.blocks);
  copies.put(params.workspace, t.workspace);
  copies.put(params.cache.k, t.k);
  copies.put(params.cache.v, t.v);
  copies.put(params.cache.page_table, t.table);
  const auto rows = static_cast<std::uint32_t>(params.attention.rows);
  const auto kv_heads = static_cast<std::uint32_t>(params.cache.kv_heads);
  Result<void> launched;
  if (problem.shape.tile == SparseTile::kMma) {
    const std::uint32_t group = kernel.plan.entries[0].block_rows;
    launched = launch_rows(kernel, 0, params, (rows + group - 1) / group, kv_heads, 1);
  } else {
    launched = launch_rows(kernel, 0, params, rows, kv_heads, static_cast<std::uint32_t>(splits));
    if (launched && splits > 1) {
      launched = launch_rows(kernel, 1, params, rows, kv_heads * problem.shape.gqa_ratio, 1);
    }
  }
  if (launched) copies.fetch();
  return launched;
}

/// The outputs of a problem as bits.
inline std::vector<std::uint32_t> sparse_bits(const SparseProblem& problem,
                                              runtime::Device& device = rows_host(),
                                              const specializer::Variant& variant = {},
                                              int splits = 1) {
  SparseTensors t(problem);
  const auto ran = run_sparse(problem, t, device, variant, splits);
  if (!ran) FAIL(ran.error().message);
  return t.bits();
}

}  // namespace broach::test
