#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/device.hpp"
#include "specializer/compilers.hpp"
#include "specializer/plan.hpp"
#include "specializer/window_rows/shape.hpp"
#include "tests/specializer/compile_support.hpp"
#include "tests/support/catch.hpp"

namespace broach::test {

/// The host as a device, one for all kernels of the process.
inline runtime::Device& host_device() {
  static const std::shared_ptr<runtime::Device> host = [] {
    auto opened = runtime::open_device("host");
    REQUIRE(opened);
    return *opened;
  }();
  return *host;
}

/// A shape's kernel, compiled for a device and loaded there.
///
/// Owns:    the module; the device outlives it.
struct CompiledKernel {
  specializer::Plan plan;
  std::unique_ptr<runtime::Module> module;

  /// `define` is one more option of the compiler's, where not empty.
  CompiledKernel(runtime::Device& device, const WindowRowsShape& shape,
                 const specializer::Variant& variant = {}, const std::string& define = {}) {
    static specializer::Compilers compilers(compilers_options());
    auto planned = specializer::plan(shape, device.target(), variant);
    INFO((planned ? std::string() : planned.error().message));
    REQUIRE(planned);
    plan = *std::move(planned);
    if (!define.empty()) plan.options.push_back(define);
    auto output = compilers.compile(plan);
    INFO((output ? std::string() : output.error().message + "\n" + output.error().detail));
    REQUIRE(output);
    std::vector<std::string> functions;
    for (const auto& entry : plan.entries) functions.push_back(entry.function);
    auto loaded = device.load(output->binary, functions);
    INFO((loaded ? std::string() : loaded.error().message));
    REQUIRE(loaded);
    module = *std::move(loaded);
  }
};

}  // namespace broach::test
