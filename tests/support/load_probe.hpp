#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernel_src/embedded.hpp"
#include "runtime/device.hpp"
#include "specializer/compilers.hpp"
#include "specializer/options.hpp"
#include "specializer/plan.hpp"
#include "specializer/sources.hpp"
#include "tests/support/catch.hpp"

namespace broach::test {

/// A probe of a test's own, a source over the kernels' headers, compiled for a device with the
/// options of kernels and loaded there. A failure is the test's.
inline std::unique_ptr<runtime::Module> load_probe(runtime::Device& device,
                                                   specializer::Compilers& compilers,
                                                   std::string_view source,
                                                   const std::vector<std::string>& functions,
                                                   std::uint32_t block_threads,
                                                   std::uint32_t dynamic_shared_bytes = 0) {
  specializer::Plan plan;
  plan.family = "probe";
  plan.target = device.target();
  plan.shape_json = "{}";
  plan.options = specializer::compiler_options(plan.target);
  for (const std::string& function : functions) {
    plan.entries.push_back({function, block_threads, dynamic_shared_bytes});
  }
  plan.kind = plan.target.vendor == specializer::Vendor::kHost
                  ? specializer::ArtifactKind::kHostSharedObject
                  : specializer::ArtifactKind::kCubin;
  auto sources = specializer::close_over_includes(
      "main.cu", std::string(source), plan.target.vendor, specializer::embedded_sources());
  REQUIRE(sources);
  plan.sources = *std::move(sources);
  auto output = compilers.compile(plan);
  INFO((output ? std::string() : output.error().message + output.error().detail));
  REQUIRE(output);
  auto module = device.load(output->binary, functions);
  INFO((module ? std::string() : module.error().message));
  REQUIRE(module);
  return *std::move(module);
}

}  // namespace broach::test
