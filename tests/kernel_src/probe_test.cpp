#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "kernel_src/embedded.hpp"
#include "kernel_src/probe/arithmetic.h"
#include "probe/arithmetic.cuh"
#include "runtime/device.hpp"
#include "runtime/host/host_device.hpp"
#include "specializer/compilers.hpp"
#include "specializer/options.hpp"
#include "specializer/sources.hpp"
#include "tests/support/catch.hpp"

namespace broach {
namespace {

constexpr std::uint32_t kCount = 1u << 16;
constexpr const char* kFunction = "broach_probe_arithmetic";

Result<specializer::Plan> probe_plan(const specializer::Target& target) {
  auto sources = specializer::close_over_includes("main.cu", "#include \"probe/arithmetic.cuh\"\n",
                                                  target.vendor, specializer::embedded_sources());
  if (!sources) return sources.error();
  specializer::Plan plan;
  plan.family = "probe";
  plan.target = target;
  plan.shape_json = "{}";
  plan.sources = std::move(*sources);
  plan.options = specializer::compiler_options(target);
  plan.entries = {{kFunction, 256, 0}};
  return plan;
}

Result<specializer::CompileOutput> compile(const specializer::Target& target) {
  specializer::CompilersOptions options;
  const char* path = std::getenv("PATH");
  options.search_path = path == nullptr ? "/usr/bin:/bin" : path;
  specializer::Compilers compilers(options);
  const auto plan = probe_plan(target);
  if (!plan) return plan.error();
  return compilers.compile(*plan);
}

/// The probe, compiled for a device and loaded.
struct Probe {
  std::shared_ptr<runtime::Device> device;
  std::unique_ptr<runtime::Module> module;
  void* out = nullptr;

  explicit Probe(std::shared_ptr<runtime::Device> on) : device(std::move(on)) {
    auto compiled = compile(device->target());
    if (!compiled) FAIL(compiled.error().message << '\n' << compiled.error().detail);
    const std::vector<std::string> functions{kFunction};
    auto loaded = device->load(compiled->binary, functions);
    if (!loaded) FAIL(loaded.error().message);
    module = std::move(*loaded);
    auto memory = device->allocate(kCount * sizeof(BroachProbeValues));
    REQUIRE(memory);
    out = *memory;
  }
  ~Probe() {
    if (out != nullptr) device->free(out);
  }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  std::vector<BroachProbeValues> run(std::uint32_t first, std::uint32_t step) {
    const BroachProbe params{static_cast<BroachProbeValues*>(out), first, step};
    runtime::LaunchConfig config;
    config.grid[0] = kCount / 256;
    config.block[0] = 256;
    config.params = &params;
    config.params_bytes = sizeof params;
    auto function = module->function(kFunction);
    REQUIRE(function);
    const auto launched = (*function)->launch(config);
    if (!launched) FAIL(launched.error().message);
    std::vector<BroachProbeValues> values(kCount);
    REQUIRE(device->copy_to_host(values.data(), out, kCount * sizeof(BroachProbeValues)));
    REQUIRE(device->synchronize(nullptr));
    return values;
  }
};

/// How many records differ, and the first one's argument.
std::size_t differences(const std::vector<BroachProbeValues>& a,
                        const std::vector<BroachProbeValues>& b) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::memcmp(&a[i], &b[i], sizeof a[i]) != 0) ++count;
  }
  return count;
}

}  // namespace

TEST_CASE("the probe compiled by the host target's compiler has this compiler's bits",
          "[kernel_src][probe]") {
  Probe host(runtime::open_host_device());
  const auto got = host.run(0, 65521);
  std::size_t wrong = 0;
  for (std::uint32_t i = 0; i < kCount; ++i) {
    BroachProbeValues want = probe::values_of(i * 65521u);
    want.sum = got[i].sum;  // Of a whole warp: compared by the GPU test.
    if (std::memcmp(&want, &got[i], sizeof want) != 0) ++wrong;
  }
  CHECK(wrong == 0);
  CHECK(differences(got, host.run(1, 65521)) > kCount / 2);  // It sees other arguments.
}

TEST_CASE("a GPU has the host's bits for a launch of the arithmetic that kernels rest on",
          "[kernel_src][probe][gpu][sanitize]") {
  auto gpu = runtime::open_device("cuda");
  if (!gpu) BROACH_SKIP("no GPU: " + gpu.error().message);
  Probe host(runtime::open_host_device());
  Probe device(*gpu);
  CHECK(differences(host.run(0, 65521), device.run(0, 65521)) == 0);
}

TEST_CASE("a GPU has the host's bits for all of the arithmetic that kernels rest on",
          "[kernel_src][probe][gpu]") {
  auto gpu = runtime::open_device("cuda");
  if (!gpu) BROACH_SKIP("no GPU: " + gpu.error().message);
  Probe host(runtime::open_host_device());
  Probe device(*gpu);
  std::size_t wrong = 0;
  // 2^22 arguments over all of fp32, then every argument beside exp's last normal result.
  for (std::uint32_t launch = 0; launch < 64; ++launch) {
    const std::uint32_t first = launch * 1021u;
    wrong += differences(host.run(first, 65521), device.run(first, 65521));
  }
  wrong += differences(host.run(0xc2aea000, 1), device.run(0xc2aea000, 1));
  CHECK(wrong == 0);
}

TEST_CASE("the probe compiles for chips of both vendors", "[kernel_src][probe]") {
  const std::string name = GENERATE(as<std::string>{}, "sm_80", "sm_90a", "gfx90a", "gfx1030");
  const auto target = specializer::parse_target(name);
  REQUIRE(target);
  const auto compiled = compile(*target);
  if (!compiled && compiled.error().code == ErrorCode::kCompilerMissing) {
    BROACH_SKIP("no compiler for " + name);
  }
  if (!compiled) FAIL(compiled.error().message << '\n' << compiled.error().detail);
  CHECK_FALSE(compiled->binary.empty());
}

}  // namespace broach
