#include <array>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "kernel_src/tiles/mma_step_model.cuh"
#include "runtime/device.hpp"
#include "specializer/compilers.hpp"
#include "tests/kernel_src/mma_step_inputs.hpp"
#include "tests/specializer/compile_support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/load_probe.hpp"

// mma_m16n8k16 and wgmma_m64n64k16 as a device runs them against the exact model, value by value.
// On a GPU this is the proof that the host's bits are the chip's.
namespace broach {
namespace {

constexpr std::string_view kParams = R"(
struct ProbeParams {
  const unsigned short* a;  // [blocks][16][16] (m, k)
  const unsigned short* b;  // [blocks][16][8] (k, n)
  const float* c;           // [blocks][16][8]
  float* d;                 // [blocks][16][8]
};
)";

constexpr std::string_view kWarpSource = R"(
#include "tiles/mma.cuh"

template <broach::Half kHalf>
BROACH_DEVICE void probe(broach::Thread thread, const ProbeParams& params) {
  const unsigned short* const a = params.a + thread.block_x() * 256;
  const unsigned short* const b = params.b + thread.block_x() * 128;
  const unsigned first = thread.block_x() * 128;
  const unsigned g = thread.lane() / 4;
  const unsigned t = thread.lane() % 4;
  unsigned words_a[4];
  unsigned words_b[2];
  float sums[4];
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned at = (g + i % 2 * 8) * 16 + 2 * t + i / 2 * 8;
    words_a[i] = a[at] | static_cast<unsigned>(a[at + 1]) << 16;
    sums[i] = params.c[first + (g + i / 2 * 8) * 8 + 2 * t + i % 2];
  }
  for (unsigned i = 0; i < 2; ++i) {
    const unsigned k = 2 * t + i * 8;
    words_b[i] = b[k * 8 + g] | static_cast<unsigned>(b[(k + 1) * 8 + g]) << 16;
  }
  broach::mma_m16n8k16<kHalf>(thread, sums, words_a, words_b);
  for (unsigned i = 0; i < 4; ++i) {
    params.d[first + (g + i / 2 * 8) * 8 + 2 * t + i % 2] = sums[i];
  }
}

BROACH_GLOBAL(probe_bf16, 32, ProbeParams, broach::NoShared) {
  probe<broach::Half::kBf16>(thread, params);
}

BROACH_GLOBAL(probe_f16, 32, ProbeParams, broach::NoShared) {
  probe<broach::Half::kF16>(thread, params);
}
)";

// Warp w of a block has the a of its w-th step and, of the 64 columns, the b of column block w.
constexpr std::string_view kWarpgroupSource = R"(
#include "tiles/swizzle.cuh"
#include "tiles/wgmma.cuh"

struct Operands {
  unsigned short a[64 * broach::kSwizzleColumns];  // rows m, columns k
  unsigned short b[64 * broach::kSwizzleColumns];  // rows n, columns k; or rows k, columns n
};
extern __shared__ __attribute__((aligned(1024))) unsigned char probe_operands[];

template <broach::Half kHalf, bool kFromRegisters>
BROACH_DEVICE void probe(broach::Thread thread, const ProbeParams& params) {
  Operands& operands = *reinterpret_cast<Operands*>(probe_operands);
  const unsigned warp = thread.warp();
  const unsigned step = thread.block_x() * 4 + warp;
  const unsigned short* const a = params.a + step * 256;
  const unsigned g = thread.lane() / 4;
  const unsigned t = thread.lane() % 4;
  for (unsigned i = thread.lane(); i < 256; i += 32) {
    operands.a[broach::swizzled_at(warp * 16 + i / 16, i % 16)] = a[i];
  }
  for (unsigned i = thread.lane(); i < 256; i += 32) {
    const unsigned k = i / 16;
    const unsigned n = warp * 16 + i % 16;
    const unsigned of = thread.block_x() * 4 + n / 8 % 4;
    const unsigned short value = params.b[of * 128 + k * 8 + n % 8];
    operands.b[kFromRegisters ? broach::swizzled_at(k, n) : broach::swizzled_at(n, k)] = value;
  }
  unsigned words[4];
  float sums[8][4];
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned at = (g + i % 2 * 8) * 16 + 2 * t + i / 2 * 8;
    words[i] = a[at] | static_cast<unsigned>(a[at + 1]) << 16;
  }
  BROACH_UNROLL
  for (unsigned block = 0; block < 8; ++block) {
    BROACH_UNROLL
    for (unsigned i = 0; i < 4; ++i) {
      sums[block][i] = params.c[step * 128 + (g + i / 2 * 8) * 8 + 2 * t + i % 2];
    }
  }
  broach::async_proxy_fence();
  broach::sync_block(thread);
  const unsigned long long of_b = broach::swizzle_descriptor(thread, operands.b);
  broach::wgmma_fence();
  if constexpr (kFromRegisters) {
    broach::wgmma_m64n64k16<kHalf>(sums, words, of_b, true);
  } else {
    broach::wgmma_m64n64k16<kHalf>(sums, broach::swizzle_descriptor(thread, operands.a), of_b, true);
  }
  broach::wgmma_commit();
  broach::wgmma_wait<0>();
  broach::wgmma_fence_accumulators(sums);
  BROACH_UNROLL
  for (unsigned block = 0; block < 4; ++block) {
    if (block != warp) continue;
    BROACH_UNROLL
    for (unsigned i = 0; i < 4; ++i) {
      params.d[step * 128 + (g + i / 2 * 8) * 8 + 2 * t + i % 2] = sums[block + 4][i];
    }
  }
}

BROACH_GLOBAL(registers_bf16, 128, ProbeParams, broach::NoShared) {
  probe<broach::Half::kBf16, true>(thread, params);
}

BROACH_GLOBAL(registers_f16, 128, ProbeParams, broach::NoShared) {
  probe<broach::Half::kF16, true>(thread, params);
}

BROACH_GLOBAL(rows_bf16, 128, ProbeParams, broach::NoShared) {
  probe<broach::Half::kBf16, false>(thread, params);
}

BROACH_GLOBAL(rows_f16, 128, ProbeParams, broach::NoShared) {
  probe<broach::Half::kF16, false>(thread, params);
}
)";
constexpr std::uint32_t kOperandBytes = 2 * 64 * 64 * 2;

/// A source and the functions of it that take a batch, bf16's before f16's.
struct Unit {
  std::string_view source;
  std::uint32_t block_threads;  ///< 32 a step.
  std::uint32_t dynamic_shared_bytes;
  std::vector<std::string> functions;
};

const Unit& warp_unit() {
  static const Unit unit{kWarpSource, 32, 0, {"probe_bf16", "probe_f16"}};
  return unit;
}

const Unit& warpgroup_unit() {
  static const Unit unit{kWarpgroupSource,
                         128,
                         kOperandBytes,
                         {"registers_bf16", "registers_f16", "rows_bf16", "rows_f16"}};
  return unit;
}

struct ProbeParams {
  const void* a;
  const void* b;
  const void* c;
  void* d;
};

/// Inputs of many steps, as the probe reads them.
struct Batch {
  std::vector<std::uint16_t> a, b;
  std::vector<std::uint32_t> c;

  explicit Batch(std::size_t blocks) : a(blocks * 256), b(blocks * 128), c(blocks * 128) {}
  std::size_t blocks() const { return c.size() / 128; }
};

Batch draw(test::Spread spread, int exponent_bits, std::size_t blocks) {
  std::mt19937 random(0xC0FFEE);
  Batch batch(blocks);
  for (std::size_t block = 0; block < blocks; ++block) {
    test::StepInputs in;
    for (std::size_t m = 0; m < 16; ++m) {
      in = test::draw_inputs(random, spread, exponent_bits);
      std::copy(in.a.begin(), in.a.end(),
                batch.a.begin() + static_cast<std::ptrdiff_t>(block * 256 + m * 16));
    }
    for (std::size_t n = 0; n < 8; ++n) {
      in = test::draw_inputs(random, spread, exponent_bits);
      for (std::size_t k = 0; k < 16; ++k) batch.b[block * 128 + k * 8 + n] = in.b[k];
      for (std::size_t m = 0; m < 16; ++m) {
        batch.c[block * 128 + m * 8 + n] = test::draw_inputs(random, spread, exponent_bits).c;
      }
    }
  }
  return batch;
}

/// Any bit patterns: NaN, infinities and overflow among them. Zeros of both signs where `zeros`.
Batch draw_patterns(std::size_t blocks, bool zeros) {
  std::mt19937 random(0xBAD);
  Batch batch(blocks);
  const std::uint32_t mask = zeros ? 0x8000U : 0xFFFFU;
  for (auto& value : batch.a) value = static_cast<std::uint16_t>(random() & mask);
  for (auto& value : batch.b) value = static_cast<std::uint16_t>(random() & mask);
  for (auto& value : batch.c) value = static_cast<std::uint32_t>(random()) & (mask << 16);
  if (!zeros) return batch;
  // Beside the zeros, a few least subnormals, whose products vanish with a sign.
  for (std::size_t i = 0; i < batch.a.size(); i += 7) batch.a[i] |= 1U;
  for (std::size_t i = 0; i < batch.b.size(); i += 5) batch.b[i] |= 1U;
  return batch;
}

class Probe {
 public:
  Probe(std::shared_ptr<runtime::Device> device, specializer::Compilers& compilers,
        const Unit& unit)
      : device_(std::move(device)), unit_(unit) {
    module_ =
        test::load_probe(*device_, compilers, std::string(kParams) + std::string(unit_.source),
                         unit_.functions, unit_.block_threads, unit_.dynamic_shared_bytes);
  }

  std::vector<std::uint32_t> run(std::string_view function, const Batch& batch) {
    const std::span<const std::byte> inputs[] = {std::as_bytes(std::span(batch.a)),
                                                 std::as_bytes(std::span(batch.b)),
                                                 std::as_bytes(std::span(batch.c))};
    void* memory[4] = {};
    for (std::size_t i = 0; i < 4; ++i) {
      const std::size_t bytes = i < 3 ? inputs[i].size() : batch.c.size() * 4;
      auto allocated = device_->allocate(bytes);
      REQUIRE(allocated);
      memory[i] = *allocated;
      if (i < 3) REQUIRE(device_->copy_to_device(memory[i], inputs[i].data(), bytes));
    }
    const ProbeParams params{memory[0], memory[1], memory[2], memory[3]};
    runtime::LaunchConfig config;
    config.grid[0] = static_cast<std::uint32_t>(batch.blocks()) * 32 / unit_.block_threads;
    config.block[0] = unit_.block_threads;
    config.dynamic_shared_bytes = unit_.dynamic_shared_bytes;
    config.params = &params;
    config.params_bytes = sizeof params;
    auto found = module_->function(function);
    REQUIRE(found);
    REQUIRE((*found)->launch(config));
    REQUIRE(device_->synchronize(nullptr));
    std::vector<std::uint32_t> out(batch.c.size());
    REQUIRE(device_->copy_to_host(out.data(), memory[3], out.size() * 4));
    for (void* each : memory) device_->free(each);
    return out;
  }

  const std::vector<std::string>& functions() const { return unit_.functions; }
  bool two_k8() const { return device_->target().mma_step == specializer::MmaStep::kTwoK8; }

 private:
  std::shared_ptr<runtime::Device> device_;
  const Unit& unit_;
  std::unique_ptr<runtime::Module> module_;
};

struct Difference {
  std::size_t count = 0;
  std::string first;
};

template <class In>
Difference compare(const Probe& probe, const Batch& batch, const std::vector<std::uint32_t>& got) {
  Difference found;
  for (std::size_t i = 0; i < batch.c.size(); ++i) {
    const std::size_t block = i / 128;
    const std::uint16_t* const a = &batch.a[block * 256 + i % 128 / 8 * 16];
    const std::uint16_t* const b = &batch.b[block * 128 + i % 8];
    const std::uint32_t expected = probe.two_k8()
                                       ? tiles::mma_step<In, tiles::TwoK8>(a, 1, b, 8, batch.c[i])
                                       : tiles::mma_step<In, tiles::OneK16>(a, 1, b, 8, batch.c[i]);
    if (got[i] == expected) continue;
    if (found.count++ > 0) continue;
    char words[64];
    std::snprintf(words, sizeof words, "c %08x, got %08x, model %08x; a, b:", batch.c[i], got[i],
                  expected);
    found.first = words;
    for (std::size_t k = 0; k < 16; ++k) {
      std::snprintf(words, sizeof words, " %04x*%04x", a[k], b[k * 8]);
      found.first += words;
    }
  }
  return found;
}

/// Each function of the unit, of its own type, on a batch of it.
template <class Draw>
void compare_functions(Probe& probe, const std::string& words, Draw draw_of) {
  for (std::size_t i = 0; i < probe.functions().size(); ++i) {
    const std::string& function = probe.functions()[i];
    const bool is_bf16 = i % 2 == 0;
    const Batch batch = draw_of(is_bf16 ? 8 : 5);
    const std::vector<std::uint32_t> got = probe.run(function, batch);
    const Difference found = is_bf16 ? compare<tiles::Bf16Format>(probe, batch, got)
                                     : compare<tiles::F16Format>(probe, batch, got);
    INFO(function << ", " << words << ": " << found.first);
    CHECK(found.count == 0);
  }
}

void compare_all(Probe& probe, std::size_t blocks) {
  for (const test::Spread spread : test::kSpreads) {
    compare_functions(probe, std::string(test::name_of(spread)),
                      [&](int exponent_bits) { return draw(spread, exponent_bits, blocks); });
  }
}

void compare_patterns(Probe& probe, std::size_t blocks, bool zeros) {
  compare_functions(probe, zeros ? "zeros of both signs" : "any bits",
                    [&](int) { return draw_patterns(blocks, zeros); });
}

}  // namespace

TEST_CASE("the host's mma is the model", "[kernel_src][mma]") {
  specializer::Compilers compilers(test::compilers_options());
  auto device = runtime::open_device("host");
  REQUIRE(device);
  Probe probe(*device, compilers, warp_unit());
  compare_all(probe, 60);
  compare_patterns(probe, 60, false);
  compare_patterns(probe, 60, true);
}

TEST_CASE("the GPU's mma is the model on millions of values", "[kernel_src][mma][gpu][sanitize]") {
  auto device = runtime::open_device("cuda");
  if (!device) BROACH_SKIP(device.error().message);
  specializer::Compilers compilers(test::compilers_options());
  Probe probe(*device, compilers, warp_unit());
  compare_all(probe, 8192);  // 1,048,576 values a spread and type
}

TEST_CASE("the GPU's mma follows the model's rules for NaN, infinities and overflow",
          "[kernel_src][mma][gpu][sanitize]") {
  auto device = runtime::open_device("cuda");
  if (!device) BROACH_SKIP(device.error().message);
  specializer::Compilers compilers(test::compilers_options());
  Probe probe(*device, compilers, warp_unit());
  compare_patterns(probe, 8192, false);
}

TEST_CASE("the GPU's mma gives the model's signs of zero", "[kernel_src][mma][gpu][sanitize]") {
  auto device = runtime::open_device("cuda");
  if (!device) BROACH_SKIP(device.error().message);
  specializer::Compilers compilers(test::compilers_options());
  Probe probe(*device, compilers, warp_unit());
  compare_patterns(probe, 8192, true);
}

TEST_CASE("the GPU's warpgroup step is the model, its operand in registers or in shared memory",
          "[kernel_src][mma][gpu][sanitize]") {
  auto device = runtime::open_device("cuda");
  if (!device) BROACH_SKIP(device.error().message);
  if ((*device)->target().arch != "sm_90a") BROACH_SKIP("this chip has no wgmma");
  specializer::Compilers compilers(test::compilers_options());
  Probe probe(*device, compilers, warpgroup_unit());
  compare_all(probe, 8192);
  compare_patterns(probe, 8192, false);
  compare_patterns(probe, 8192, true);
}

}  // namespace broach
