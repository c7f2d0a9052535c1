#include <algorithm>
#include <cstring>
#include <random>

#include "common/e4m3.cuh"
#include "common/ftz.cuh"
#include "common/sfu.cuh"
#include "tests/specializer/compile_support.hpp"
#include "tests/support/load_probe.hpp"
#include "tests/tools/sage_exact/support.hpp"
#include "tiles/mma_f16.cuh"
#include "tiles/mma_s8.cuh"
#include "tiles/mma_step_model.cuh"

// The instructions that sage_exact rests on, as a device runs them, against their host models. On a
// GPU this is the proof that the host's bits are the chip's.
namespace broach {
namespace {

constexpr std::string_view kSource = R"(
#include "common/e4m3.cuh"
#include "common/ftz.cuh"
#include "common/sfu.cuh"
#include "common/sfu_model.cuh"
#include "tiles/mma_e4m3.cuh"
#include "tiles/mma_s8.cuh"

struct ProbeParams {
  const unsigned* a;
  const unsigned* b;
  const unsigned* c;
  unsigned* d;
  unsigned count;
  unsigned first;
};

using namespace broach;

// d[0], d[1]: arguments first .. first + count - 1 at which an approximation is not its model.
BROACH_GLOBAL(probe_sfu, 256, ProbeParams, NoShared) {
  unsigned wrong[2] = {0, 0};
  const unsigned stride = thread.grid_x() * 256;
  for (unsigned i = thread.block_x() * 256 + thread.index(); i < params.count; i += stride) {
    const float x = float_of(params.first + i);
    wrong[0] += bits_of(ex2_approx(x)) != sfu::ex2(bits_of(x)) ? 1u : 0u;
    wrong[1] += bits_of(rcp_approx(x)) != sfu::rcp(bits_of(x)) ? 1u : 0u;
  }
  for (int i = 0; i < 2; ++i) {
    if (wrong[i] != 0) atomic_add(params.d + i, wrong[i]);
  }
}

// d[i][8]: each operation of a[i], b[i], c[i].
BROACH_GLOBAL(probe_operations, 256, ProbeParams, NoShared) {
  const unsigned i = thread.block_x() * 256 + thread.index();
  if (i >= params.count) return;
  const float a = float_of(params.a[i]);
  const float b = float_of(params.b[i]);
  const float c = float_of(params.c[i]);
  unsigned* const d = params.d + 8 * i;
  d[0] = bits_of(mul_ftz(a, b));
  d[1] = bits_of(fma_ftz(a, b, c));
  d[2] = bits_of(add_ftz(a, c));
  d[3] = bits_of(sub_ftz(a, c));
  d[4] = bits_of(max_ftz(a, b));
  d[5] = bits_of(min_ftz(a, b));
  d[6] = e4m3_pair(a, b);
  d[7] = f16_pair_of_e4m3(params.c[i] & 0xffffu);
}

// One warp a block. a [16][8 words], b [8][8 words] (columns n), c and d [16][8 n]: words.
BROACH_GLOBAL(probe_s8, 32, ProbeParams, NoShared) {
  const unsigned g = thread.lane() / 4;
  const unsigned t = thread.lane() % 4;
  const unsigned* const left = params.a + thread.block_x() * 128;
  const unsigned* const right = params.b + thread.block_x() * 64;
  unsigned a[4];
  unsigned b[1][2];
  int c[1][4];
  for (unsigned i = 0; i < 4; ++i) a[i] = left[(g + i % 2 * 8) * 8 + t + i / 2 * 4];
  for (unsigned i = 0; i < 2; ++i) b[0][i] = right[g * 8 + t + i * 4];
  const unsigned first = thread.block_x() * 128;
  for (unsigned i = 0; i < 4; ++i) {
    c[0][i] = static_cast<int>(params.c[first + (g + i / 2 * 8) * 8 + 2 * t + i % 2]);
  }
  mma_m16n8k32_s8(thread, c, a, b);
  for (unsigned i = 0; i < 4; ++i) {
    params.d[first + (g + i / 2 * 8) * 8 + 2 * t + i % 2] = static_cast<unsigned>(c[0][i]);
  }
}

// a [16][8 words of two f16], b [8][8 words], c and d [16][8 n] f16 in the low half.
template <bool kE4m3>
BROACH_DEVICE void probe_f16_step(Thread thread, const ProbeParams& params) {
  const unsigned g = thread.lane() / 4;
  const unsigned t = thread.lane() % 4;
  const unsigned* const left = params.a + thread.block_x() * 128;
  const unsigned* const right = params.b + thread.block_x() * 64;
  unsigned a[4];
  unsigned b[1][2];
  unsigned d[1][2];
  for (unsigned i = 0; i < 4; ++i) a[i] = left[(g + i % 2 * 8) * 8 + t + i / 2 * 4];
  for (unsigned i = 0; i < 2; ++i) b[0][i] = right[g * 8 + t + i * 4];
  const unsigned first = thread.block_x() * 128 + 2 * t;
  for (unsigned i = 0; i < 2; ++i) {
    const unsigned* const at = params.c + first + (g + i * 8) * 8;
    d[0][i] = (at[0] & 0xffffu) | at[1] << 16;
  }
  if constexpr (kE4m3) {
    mma_m16n8k32_e4m3(thread, d, a, b);
  } else {
    mma_m16n8k16_f16(thread, d, a, b);
  }
  for (unsigned i = 0; i < 2; ++i) {
    unsigned* const at = params.d + first + (g + i * 8) * 8;
    at[0] = d[0][i] & 0xffffu;
    at[1] = d[0][i] >> 16;
  }
}

BROACH_GLOBAL(probe_f16, 32, ProbeParams, NoShared) { probe_f16_step<false>(thread, params); }
BROACH_GLOBAL(probe_e4m3, 32, ProbeParams, NoShared) { probe_f16_step<true>(thread, params); }
)";

struct ProbeParams {
  const void* a;
  const void* b;
  const void* c;
  void* d;
  std::uint32_t count;
  std::uint32_t first;
};

using Words = std::vector<std::uint32_t>;

class Probe {
 public:
  explicit Probe(std::shared_ptr<runtime::Device> device) : device_(std::move(device)) {
    specializer::Compilers compilers(test::compilers_options());
    module_ = test::load_probe(
        *device_, compilers, kSource,
        {"probe_sfu", "probe_operations", "probe_s8", "probe_f16", "probe_e4m3"}, 32);
  }

  Words run(std::string_view function, std::uint32_t blocks, std::uint32_t threads,
            const Words (&in)[3], std::size_t results, std::uint32_t count = 0,
            std::uint32_t first = 0) {
    void* memory[4] = {};
    for (std::size_t i = 0; i < 4; ++i) {
      const Words zeros(i < 3 ? in[i].size() : results, 0);
      const Words& from = i < 3 ? in[i] : zeros;
      auto allocated = device_->allocate(std::max<std::size_t>(from.size(), 1) * 4);
      REQUIRE(allocated);
      memory[i] = *allocated;
      REQUIRE(device_->copy_to_device(memory[i], from.data(), from.size() * 4));
    }
    const ProbeParams params{memory[0], memory[1], memory[2], memory[3], count, first};
    runtime::LaunchConfig config;
    config.grid[0] = blocks;
    config.block[0] = threads;
    config.params = &params;
    config.params_bytes = sizeof params;
    auto found = module_->function(function);
    REQUIRE(found);
    REQUIRE((*found)->launch(config));
    REQUIRE(device_->synchronize(nullptr));
    Words out(results);
    REQUIRE(device_->copy_to_host(out.data(), memory[3], out.size() * 4));
    for (void* each : memory) device_->free(each);
    return out;
  }

  const specializer::Target& target() const { return device_->target(); }

 private:
  std::shared_ptr<runtime::Device> device_;
  std::unique_ptr<runtime::Module> module_;
};

bool is_nan(std::uint32_t bits) { return (bits & 0x7fffffffU) > 0x7f800000U; }

/// Operands near what flushes, near the limits, and of any bits.
Words draw_operands(std::mt19937& random, std::size_t count) {
  Words words(count);
  for (std::uint32_t& word : words) {
    word = static_cast<std::uint32_t>(random());
    if (random() % 4 != 0)
      word = static_cast<std::uint32_t>((word & 0x80ffffffU) | (0x1fU + random() % 2) << 24);
    if (random() % 8 == 0) word &= 0x80ffffffU;  // the least normals and the subnormals
  }
  return words;
}

void compare_operations(Probe& probe, std::uint32_t count) {
  std::mt19937 random(99);
  const Words in[3] = {draw_operands(random, count), draw_operands(random, count),
                       draw_operands(random, count)};
  const Words got =
      probe.run("probe_operations", (count + 255) / 256, 256, in, std::size_t{count} * 8, count);
  std::size_t wrong[8] = {};
  for (std::size_t i = 0; i < count; ++i) {
    const float a = float_of(in[0][i]);
    const float b = float_of(in[1][i]);
    const float c = float_of(in[2][i]);
    const std::uint32_t want[8] = {bits_of(mul_ftz(a, b)), bits_of(fma_ftz(a, b, c)),
                                   bits_of(add_ftz(a, c)), bits_of(sub_ftz(a, c)),
                                   bits_of(max_ftz(a, b)), bits_of(min_ftz(a, b)),
                                   e4m3_pair(a, b),        f16_pair_of_e4m3(in[2][i] & 0xffffU)};
    for (std::size_t j = 0; j < 8; ++j) {
      const bool equal =
          got[8 * i + j] == want[j] || (j < 6 && is_nan(got[8 * i + j]) && is_nan(want[j]));
      wrong[j] += equal ? 0U : 1U;
    }
  }
  for (std::size_t j = 0; j < 8; ++j) {
    INFO("operation " << j);
    CHECK(wrong[j] == 0);
  }
}

/// Two f16 values a word: any bits, or (`near`) values of E4M3's range.
Words draw_halves(std::mt19937& random, std::size_t count, bool near) {
  Words words(count);
  const auto half = [&] {
    const auto bits = static_cast<std::uint32_t>(random());
    return near ? f16_of_e4m3(bits & 0xffU) : bits & 0xffffU;
  };
  for (std::uint32_t& word : words) word = half() | half() << 16;
  return words;
}

std::uint16_t half_of(const Words& words, std::size_t index) {
  return static_cast<std::uint16_t>(words[index / 2] >> index % 2 * 16);
}

void compare_f16(Probe& probe, std::uint32_t blocks, bool near) {
  std::mt19937 random(7);
  Words in[3] = {draw_halves(random, std::size_t{blocks} * 128, near),
                 draw_halves(random, std::size_t{blocks} * 64, near),
                 {}};
  in[2].resize(std::size_t{blocks} * 128);
  for (auto& word : in[2])
    word = static_cast<std::uint32_t>(near && random() % 2 ? 0 : random() & 0xffffU);
  const Words got = probe.run("probe_f16", blocks, 32, in, std::size_t{blocks} * 128);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const std::size_t block = i / 128;
    std::uint16_t a[16];
    std::uint16_t b[16];
    for (std::size_t k = 0; k < 16; ++k) {
      a[k] = half_of(in[0], block * 256 + i % 128 / 8 * 16 + k);
      b[k] = half_of(in[1], block * 128 + i % 8 * 16 + k);
    }
    const std::uint16_t want =
        tiles::fused_step_f16<tiles::F16Format>(a, 1, b, 1, static_cast<std::uint16_t>(in[2][i]));
    wrong += got[i] != want ? 1U : 0U;
  }
  CHECK(wrong == 0);
}

/// sm_90's chain for one output: tiles/mma_e4m3.cuh.
std::uint16_t chained(const Words& left, std::size_t row, const Words& right, std::size_t column,
                      std::uint16_t c) {
  std::uint16_t sum = 0;
  for (std::size_t high = 0; high < 2; ++high) {
    std::uint16_t a[16];
    std::uint16_t b[16];
    for (std::size_t k = 0; k < 16; ++k) {
      const std::size_t byte = k / 2 * 4 + high * 2 + k % 2;
      a[k] = static_cast<std::uint16_t>(f16_of_e4m3(left[row + byte / 4] >> byte % 4 * 8 & 0xffU));
      b[k] =
          static_cast<std::uint16_t>(f16_of_e4m3(right[column + byte / 4] >> byte % 4 * 8 & 0xffU));
    }
    sum = tiles::fused_step_f16<tiles::F16Format>(a, 1, b, 1, sum);
  }
  return static_cast<std::uint16_t>(add_f16_pair(sum, c) & 0xffffU);
}

void compare_e4m3(Probe& probe, std::uint32_t blocks) {
  std::mt19937 random(8);
  Words in[3] = {Words(std::size_t{blocks} * 128), Words(std::size_t{blocks} * 64),
                 Words(std::size_t{blocks} * 128)};
  for (auto& word : in[0]) word = static_cast<std::uint32_t>(random()) & 0x7f7f7f7fU;
  for (auto& word : in[1]) word = static_cast<std::uint32_t>(random()) & 0xbfbfbfbfU;
  for (auto& word : in[2]) word = static_cast<std::uint32_t>(random() % 2 ? 0 : random() & 0xbfffU);
  const Words got = probe.run("probe_e4m3", blocks, 32, in, std::size_t{blocks} * 128);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const std::size_t block = i / 128;
    const std::uint16_t want =
        chained(in[0], block * 128 + i % 128 / 8 * 8, in[1], block * 64 + i % 8 * 8,
                static_cast<std::uint16_t>(in[2][i]));
    wrong += got[i] != want ? 1U : 0U;
  }
  CHECK(wrong == 0);
}

void compare_s8(Probe& probe, std::uint32_t blocks) {
  std::mt19937 random(9);
  Words in[3] = {Words(std::size_t{blocks} * 128), Words(std::size_t{blocks} * 64),
                 Words(std::size_t{blocks} * 128)};
  for (Words& words : in) {
    for (auto& word : words) word = static_cast<std::uint32_t>(random());
  }
  for (auto& word : in[2]) word >>= 8;
  const Words got = probe.run("probe_s8", blocks, 32, in, std::size_t{blocks} * 128);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    int want = static_cast<int>(in[2][i]);
    for (std::size_t word = 0; word < 8; ++word) {
      want += dot_s8(in[0][i / 8 * 8 + word], in[1][i / 128 * 64 + i % 8 * 8 + word]);
    }
    wrong += got[i] != static_cast<std::uint32_t>(want) ? 1U : 0U;
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("the host target's narrow steps and flushing operations are their models",
          "[tools][sage_exact]") {
  auto host = runtime::open_device("host");
  REQUIRE(host);
  Probe probe(*host);
  compare_operations(probe, 4096);
  compare_f16(probe, 40, true);
  compare_f16(probe, 40, false);
  compare_e4m3(probe, 40);
  compare_s8(probe, 40);
}

TEST_CASE("the GPU's narrow steps and flushing operations are the models",
          "[tools][sage_exact][gpu][sanitize]") {
  auto device = runtime::open_device("cuda");
  if (!device) BROACH_SKIP(device.error().message);
  Probe probe(*device);
  compare_operations(probe, 1U << 20);
  compare_s8(probe, 4096);
  if ((*device)->target().arch != "sm_90a") BROACH_SKIP("the f16 model is sm_90's");
  compare_f16(probe, 8192, true);
  compare_f16(probe, 8192, false);
  compare_e4m3(probe, 8192);
}

TEST_CASE("the GPU's exponential and reciprocal are the models at every argument",
          "[tools][sage_exact][gpu]") {
  auto device = runtime::open_device("cuda");
  if (!device) BROACH_SKIP(device.error().message);
  if ((*device)->target().arch != "sm_90a") BROACH_SKIP("the tables are sm_90's");
  Probe probe(*device);
  const Words none[3];
  for (std::uint32_t part = 0; part < 4; ++part) {
    const Words wrong = probe.run("probe_sfu", 2048, 256, none, 2, 1U << 30, part << 30);
    INFO("arguments from " << (part << 30));
    CHECK(wrong[0] == 0);
    CHECK(wrong[1] == 0);
  }
}

}  // namespace broach
