// ex2.approx.ftz.f32 and rcp.approx.ftz.f32 as a device runs them against sm_90's model, over all
// 2^32 arguments: what arith=tile64_ex2 rests on. And how far the model lies from the functions.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/sfu_model.cuh"
#include "runtime/device.hpp"
#include "specializer/compilers.hpp"
#include "tests/specializer/compile_support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/load_probe.hpp"

namespace broach {
namespace {

// What the probe was asked, and what it found: [0] how many arguments differ, [1] one of them.
struct ProbeParams {
  std::uint32_t* found;
  std::uint32_t first;  ///< Argument of the first thread.
  std::uint32_t each;   ///< Arguments a thread.
};

constexpr std::uint32_t kThreads = 256;

// A GPU compiles both: the instruction, and the model in integers.
constexpr std::string_view kSource = R"(
#include "common/sfu.cuh"
#include "common/sfu_model.cuh"

struct ProbeParams {
  unsigned* found;
  unsigned first;
  unsigned each;
};

template <class Instruction, class Model>
BROACH_DEVICE void probe(broach::Thread thread, const ProbeParams& params,
                         const Instruction& instruction, const Model& model) {
  const unsigned index = thread.block_x() * thread.block_threads() + thread.index();
  for (unsigned i = 0; i < params.each; ++i) {
    const unsigned bits = params.first + index * params.each + i;
    const unsigned got = broach::bits_of(instruction(broach::float_of(bits)));
    if (got == model(bits)) continue;
    broach::atomic_add(params.found, 1u);
    params.found[1] = bits;
  }
}

BROACH_GLOBAL(probe_ex2, 256, ProbeParams, broach::NoShared) {
  probe(thread, params, [](float x) { return broach::ex2_approx(x); },
        [](unsigned bits) { return broach::sfu::ex2(bits); });
}

BROACH_GLOBAL(probe_rcp, 256, ProbeParams, broach::NoShared) {
  probe(thread, params, [](float x) { return broach::rcp_approx(x); },
        [](unsigned bits) { return broach::sfu::rcp(bits); });
}

// One argument in 65,536 gives another result.
BROACH_GLOBAL(probe_wrong, 256, ProbeParams, broach::NoShared) {
  probe(thread, params, [](float x) { return broach::ex2_approx(x); },
        [](unsigned bits) { return broach::sfu::ex2(bits) ^ (bits % 65536 == 77 ? 1u : 0u); });
}
)";

const std::vector<std::string>& functions() {
  static const std::vector<std::string> kNames = {"probe_ex2", "probe_rcp", "probe_wrong"};
  return kNames;
}

class Probe {
 public:
  explicit Probe(std::shared_ptr<runtime::Device> device) : device_(std::move(device)) {
    specializer::Compilers compilers(test::compilers_options());
    module_ = test::load_probe(*device_, compilers, kSource, functions(), kThreads);
  }

  struct Found {
    std::uint32_t count = 0;
    std::uint32_t argument = 0;
  };

  /// Compares blocks x kThreads x `each` arguments from `first` on.
  Found run(std::string_view function, std::uint32_t first, std::uint32_t blocks,
            std::uint32_t each) {
    Found found;
    auto memory = device_->allocate(sizeof found);
    REQUIRE(memory);
    REQUIRE(device_->copy_to_device(*memory, &found, sizeof found));
    const ProbeParams params{static_cast<std::uint32_t*>(*memory), first, each};
    runtime::LaunchConfig config;
    config.grid[0] = blocks;
    config.block[0] = kThreads;
    config.params = &params;
    config.params_bytes = sizeof params;
    auto entry = module_->function(function);
    REQUIRE(entry);
    REQUIRE((*entry)->launch(config));
    REQUIRE(device_->synchronize(nullptr));
    REQUIRE(device_->copy_to_host(&found, *memory, sizeof found));
    device_->free(*memory);
    return found;
  }

 private:
  std::shared_ptr<runtime::Device> device_;
  std::unique_ptr<runtime::Module> module_;
};

}  // namespace

TEST_CASE("the exponential's model is within 2 ulps of 2^x", "[kernel_src][sfu]") {
  // The significand at every fraction; cutting an argument to units of 2^-23 is worth ln 2 of an
  // ulp more (docs/families/window_rows_ranges.md).
  double most = 0;
  for (unsigned fraction = 0; fraction < 1u << 23; ++fraction) {
    const double got = 1.0 + sfu::ex2_fraction(fraction) * 0x1p-23;
    const double exact = std::exp2(fraction * 0x1p-23);
    most = std::max(most, std::abs(got / exact - 1.0));
  }
  CHECK(most < 1.23 * 0x1p-23);
  CHECK(most + 0.6932 * 0x1p-23 < 2 * 0x1p-23);
}

TEST_CASE("the probe compares the host with the model and sees a planted difference",
          "[kernel_src][sfu]") {
  auto device = runtime::open_device("host");
  REQUIRE(device);
  Probe probe(*device);
  CHECK(probe.run("probe_ex2", 0xc0000000u, 4, 64).count == 0);
  CHECK(probe.run("probe_wrong", 0xc0000000u, 1, 256).count == 1);
}

TEST_CASE("the GPU's exponential and reciprocal are sm_90's model at every argument",
          "[kernel_src][sfu][gpu]") {
  auto device = runtime::open_device("cuda");
  if (!device) BROACH_SKIP(device.error().message);
  const std::string& arch = (*device)->target().arch;
  if (arch != "sm_90a" && arch != "sm_90") {
    BROACH_SKIP("only sm_90's exponential is known over every argument; this chip is " + arch);
  }
  Probe probe(*device);
  for (const std::string& function : functions()) {
    // 65,536 blocks of 256 threads, 256 arguments each: 2^32.
    const Probe::Found found = probe.run(function, 0, 65536, 256);
    CAPTURE(function, found.count, found.argument);
    CHECK((found.count == 0) == (function != "probe_wrong"));
  }
}

}  // namespace broach
