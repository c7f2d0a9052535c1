// Kernels that are not ours, launched: of the SDK header on the host and a GPU, plain ones on a
// GPU.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "runtime/launch_checks.hpp"
#include "runtime/load_plan.hpp"
#include "tests/runtime/fixture.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/kernel_plan.hpp"
#include "tests/support/temp_dir.hpp"

namespace broach {
namespace {

using runtime::LaunchConfig;

constexpr const char* kSdkSource = R"(
#include "broach/kernel.cuh"
struct Params { float* out; unsigned rows; };
BROACH_CONSTANT float acme_table[4];
BROACH_VARIABLE unsigned acme_count;

BROACH_KERNEL(acme_scale, 128, Params, broach::NoShared) {
  const unsigned at = thread.block_x() * 128 + thread.index();
  params.out[at] = acme_table[at % 4] * static_cast<float>(at);
  if (thread.index() == 0) broach::atomic_add(&acme_count, 1u);
}
struct Tile { float value[256]; };
BROACH_KERNEL_OF(acme_cube, broach::block(32, 4, 2).dynamic_shared(98304), Params, Tile) {
  const unsigned block =
      (thread.block_z() * thread.grid_y() + thread.block_y()) * thread.grid_x() + thread.block_x();
  shared.value[thread.index()] =
      static_cast<float>(thread.x() + 100 * thread.y() + 10000 * thread.z());
  float* const last = static_cast<float*>(broach::dynamic_shared(thread)) + 98304 / 4 - 256;
  broach::sync_block(thread);
  last[255 - thread.index()] = shared.value[thread.index()];
  broach::sync_block(thread);
  float part[1] = {thread.lane() == 3 ? last[255 - thread.index()] : 0.0f};
  params.out[block * 256 + thread.index()] = broach::sum_tree<32>(thread, part);
}
)";

// One by one what only a GPU has. The numbers that the tests expect are worked out there.
constexpr const char* kPlainSource = R"(
struct __align__(64) Map { unsigned words[32]; };
struct Big { unsigned char bytes[3000]; };
extern "C" __global__ void mixed(float* out, char tag, double factor, const __grid_constant__ Map map,
                                 int rows, const __grid_constant__ Big big) {
  const unsigned at = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  out[at] = static_cast<float>(tag + factor * map.words[at % 32] + rows + big.bytes[at]);
}
extern "C" __global__ void ranks(unsigned* out) {
  unsigned rank = 0, count = 0;
#if __CUDA_ARCH__ >= 900
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(count));
#endif
  if (threadIdx.x == 0) out[blockIdx.x] = 100 * count + rank;
}
extern "C" __global__ void meets(unsigned* arrived, unsigned* out) {
  if (threadIdx.x == 0) {
    atomicAdd(arrived, 1u);
    while (atomicAdd(arrived, 0u) < gridDim.x) {
    }
    out[blockIdx.x] = 1;
  }
}
extern "C" __global__ void writes(unsigned* data, unsigned value) {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
  for (unsigned i = 0; i < 1000; ++i) __nanosleep(1000);
  data[threadIdx.x] = value;
}
extern "C" __global__ void reads(const unsigned* data, unsigned* out) {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  out[threadIdx.x] = data[threadIdx.x] + 1;
}
extern "C" __global__ void shares(float* out, unsigned count) {
  extern __shared__ float values[];
  for (unsigned i = threadIdx.x; i < count; i += blockDim.x) values[i] = i;
  __syncthreads();
  for (unsigned i = threadIdx.x; i < count; i += blockDim.x) out[i] = values[count - 1 - i];
}
)";

/// Kernels of a source, loaded on a device.
class Kernels {
 public:
  Kernels(const std::shared_ptr<runtime::Device>& device, std::string source,
          std::vector<std::string> functions)
      : device_(device), forge_(runtime::open_forge(test::options_in(dir_))) {
    const specializer::Plan plan =
        test::kernel_plan(device_->target(), std::move(source), std::move(functions));
    auto loaded = runtime::load_plan(forge_, *device_, plan, specializer::OnMiss::kCompile);
    if (!loaded) FAIL(loaded.error().message + '\n' + loaded.error().detail);
    loaded_ = *std::move(loaded);
  }

  runtime::Module& module() { return *loaded_.module; }

  const LaunchLimits& limits(std::string_view function) const {
    const auto& all = loaded_.artifact.object->limits;
    const auto found = std::find_if(all.begin(), all.end(), [&](const LaunchLimits& each) {
      return each.function == function;
    });
    REQUIRE(found != all.end());
    return *found;
  }

  /// Fills in what the kernel states, checks and launches.
  Result<void> launch(std::string_view name, LaunchConfig config) {
    const LaunchLimits& stated = limits(name);
    runtime::take_stated_geometry(config, stated);
    if (auto fits = runtime::check_launch(config, stated, device_->target()); !fits) return fits;
    auto function = module().function(name);
    if (!function) return function.error();
    return (*function)->launch(config);
  }

  /// The same with arguments, and the device is waited for.
  template <class... Values>
  Result<void> run(std::string_view name, LaunchConfig config, const Values&... values) {
    const void* const arguments[] = {&values...};
    config.arguments = arguments;
    if (auto launched = launch(name, config); !launched) return launched;
    return device_->synchronize(nullptr);
  }

 private:
  test::TempDir dir_;
  std::shared_ptr<runtime::Device> device_;
  specializer::Forge forge_;
  runtime::LoadedPlan loaded_;
};

/// Device memory of plain values.
template <class T>
class Values {
 public:
  Values(runtime::Device& device, std::size_t count, T start = {})
      : device_(device), count_(count) {
    auto memory = device_.allocate(count * sizeof(T));
    REQUIRE(memory);
    at = static_cast<T*>(*memory);
    const std::vector<T> values(count, start);
    REQUIRE(device_.copy_to_device(at, values.data(), count * sizeof(T)));
  }
  ~Values() { device_.free(at); }
  Values(const Values&) = delete;
  Values& operator=(const Values&) = delete;

  std::vector<T> read() const {
    std::vector<T> values(count_);
    REQUIRE(device_.copy_to_host(values.data(), at, count_ * sizeof(T)));
    return values;
  }

  T* at = nullptr;

 private:
  runtime::Device& device_;
  std::size_t count_;
};

LaunchConfig shaped(std::uint32_t blocks, std::uint32_t threads) {
  LaunchConfig config;
  config.grid[0] = blocks;
  config.block[0] = threads;
  return config;
}

struct SdkParams {
  float* out;
  unsigned rows;
};

void check_scale(const std::string& device_name) {
  const auto opened = runtime::open_device(device_name);
  if (!opened) BROACH_SKIP(opened.error().message);
  const auto& device = *opened;
  Kernels kernels(device, kSdkSource, {"acme_scale", "acme_cube"});
  Values<float> out(*device, 3 * 128);
  const SdkParams params{out.at, 1};
  LaunchConfig config;
  config.grid[0] = 3;
  config.params = &params;
  config.params_bytes = sizeof params;
  for (const float scale : {1.0F, 2.0F}) {
    const float table[] = {scale, 2 * scale, 3 * scale, 4 * scale};
    REQUIRE(kernels.module().set_symbol("acme_table", std::as_bytes(std::span(table)), nullptr));
    REQUIRE(kernels.launch("acme_scale", config));
    REQUIRE(device->synchronize(nullptr));
    std::vector<float> expected(3 * 128);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      expected[i] = table[i % 4] * static_cast<float>(i);
    }
    CHECK(out.read() == expected);
  }
  const auto count = kernels.module().symbol("acme_count");
  REQUIRE(count);
  REQUIRE(count->bytes == sizeof(unsigned));
  unsigned launched = 0;
  REQUIRE(device->copy_to_host(&launched, count->address, sizeof launched));
  CHECK(launched == 6);
}

void check_cube(const std::string& device_name) {
  const auto opened = runtime::open_device(device_name);
  if (!opened) BROACH_SKIP(opened.error().message);
  const auto& device = *opened;
  Kernels kernels(device, kSdkSource, {"acme_scale", "acme_cube"});
  Values<float> out(*device, 12 * 256);
  const SdkParams params{out.at, 1};
  LaunchConfig config;
  config.grid[0] = 2;
  config.grid[1] = 3;
  config.grid[2] = 2;
  config.params = &params;
  config.params_bytes = sizeof params;
  REQUIRE(kernels.launch("acme_cube", config));
  REQUIRE(device->synchronize(nullptr));
  // Every lane of a warp gets what its lane 3 wrote: 3 + 100 y + 10,000 z.
  std::vector<float> expected(12 * 256);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const std::size_t warp = i % 256 / 32;
    expected[i] = static_cast<float>(3 + 100 * (warp % 4) + 10000 * (warp / 4));
  }
  CHECK(out.read() == expected);
}

}  // namespace

TEST_CASE("a kernel of the SDK header runs on the host with its variables set by name",
          "[runtime][own_kernels]") {
  check_scale("host");
}

TEST_CASE("a kernel of the SDK header runs on the host in a block of three dimensions",
          "[runtime][own_kernels]") {
  check_cube("host");
}

TEST_CASE("a launch that the kernel does not state is refused before the device sees it",
          "[runtime][own_kernels]") {
  const auto opened = runtime::open_device("host");
  if (!opened) BROACH_SKIP(opened.error().message);
  const auto& device = *opened;
  Kernels kernels(device, kSdkSource, {"acme_scale", "acme_cube"});
  const SdkParams params{nullptr, 1};
  LaunchConfig config = shaped(1, 64);
  config.params = &params;
  config.params_bytes = sizeof params;
  const auto block = kernels.launch("acme_scale", config);
  REQUIRE_FALSE(block);
  CHECK(block.error().message == "acme_scale cannot launch on " + device->target().name +
                                     ": a block of 64 x 1 x 1 threads is not the 128 x 1 x 1 that "
                                     "the kernel states");
  config = {};
  config.params = &params;
  config.params_bytes = 12;
  const auto bytes = kernels.launch("acme_scale", config);
  REQUIRE_FALSE(bytes);
  CHECK(bytes.error().message.find("a struct of 12 bytes for 1 parameter of 16 bytes") !=
        std::string::npos);
}

TEST_CASE("a kernel of the SDK header runs on a GPU as on the host",
          "[runtime][own_kernels][gpu]") {
  check_scale("cuda");
  check_cube("cuda");
}

TEST_CASE("a plain kernel takes several parameters of any type on a GPU",
          "[runtime][own_kernels][gpu]") {
  const auto opened = runtime::open_device("cuda");
  if (!opened) BROACH_SKIP(opened.error().message);
  const auto& device = *opened;
  Kernels kernels(device, kPlainSource, {"mixed"});
  CHECK(kernels.limits("mixed").parameter_bytes ==
        std::vector<std::uint32_t>{8, 1, 8, 128, 4, 3000});
  struct alignas(64) Map {
    unsigned words[32];
  } map{};
  struct Big {
    unsigned char bytes[3000];
  } big{};
  std::iota(std::begin(map.words), std::end(map.words), 1U);
  for (std::size_t i = 0; i < std::size(big.bytes); ++i)
    big.bytes[i] = static_cast<unsigned char>(i % 251);
  Values<float> out(*device, 128);
  LaunchConfig config = shaped(1, 16);
  config.block[1] = 4;
  config.block[2] = 2;
  const double factor = 0.5;
  REQUIRE(kernels.run("mixed", config, out.at, 'a', factor, map, 7, big));
  const auto values = out.read();
  for (std::size_t i = 0; i < values.size(); ++i) {
    CHECK(values[i] == static_cast<float>('a' + 0.5 * map.words[i % 32] + 7 + big.bytes[i]));
  }
}

TEST_CASE("a launch in clusters has them on a GPU", "[runtime][own_kernels][gpu]") {
  const auto opened = runtime::open_device("cuda");
  if (!opened) BROACH_SKIP(opened.error().message);
  const auto& device = *opened;
  Kernels kernels(device, kPlainSource, {"ranks"});
  Values<unsigned> out(*device, 16);
  LaunchConfig config = shaped(16, 32);
  config.cluster[0] = GENERATE(4U, 16U);
  config.cluster[1] = config.cluster[2] = 1;
  const auto ran = kernels.run("ranks", config, out.at);
  if (!ran && ran.error().code == ErrorCode::kUnsupported) BROACH_SKIP(ran.error().message);
  REQUIRE(ran);
  const auto ranks = out.read();
  for (unsigned i = 0; i < ranks.size(); ++i) {
    CHECK(ranks[i] == 100 * config.cluster[0] + i % config.cluster[0]);
  }
}

TEST_CASE("blocks of a cooperative launch wait for each other on a GPU",
          "[runtime][own_kernels][gpu]") {
  const auto opened = runtime::open_device("cuda");
  if (!opened) BROACH_SKIP(opened.error().message);
  const auto& device = *opened;
  Kernels kernels(device, kPlainSource, {"meets"});
  const std::uint32_t blocks = device->multiprocessors();
  Values<unsigned> arrived(*device, 1), out(*device, blocks);
  LaunchConfig config = shaped(blocks, 32);
  config.grid_sync = runtime::GridSync::kCooperative;
  REQUIRE(kernels.run("meets", config, arrived.at, out.at));
  CHECK(out.read() == std::vector<unsigned>(blocks, 1U));
  // More blocks than can run at one time are the driver's to refuse.
  config.grid[0] = blocks * 1000;
  CHECK_FALSE(kernels.run("meets", config, arrived.at, out.at));
}

TEST_CASE("a launch that may overlap the one before reads what that wrote, on a GPU",
          "[runtime][own_kernels][gpu]") {
  const auto opened = runtime::open_device("cuda");
  if (!opened) BROACH_SKIP(opened.error().message);
  const auto& device = *opened;
  Kernels kernels(device, kPlainSource, {"writes", "reads"});
  Values<unsigned> data(*device, 64), out(*device, 64);
  const unsigned value = 41;
  const void* const to_write[] = {&data.at, &value};
  LaunchConfig write = shaped(1, 64);
  write.arguments = to_write;
  REQUIRE(kernels.launch("writes", write));
  LaunchConfig read = shaped(1, 64);
  read.overlap = runtime::Overlap::kProgrammatic;
  REQUIRE(kernels.run("reads", read, data.at, out.at));
  CHECK(out.read() == std::vector<unsigned>(64, 42U));
}

TEST_CASE("dynamic shared memory beyond 48 KiB is the block's on a GPU",
          "[runtime][own_kernels][gpu]") {
  const auto opened = runtime::open_device("cuda");
  if (!opened) BROACH_SKIP(opened.error().message);
  const auto& device = *opened;
  Kernels kernels(device, kPlainSource, {"shares"});
  const std::uint32_t bytes = device->target().max_shared_bytes;
  const unsigned count = bytes / sizeof(float);
  Values<float> out(*device, count);
  LaunchConfig config = shaped(1, 256);
  config.dynamic_shared_bytes = bytes;
  REQUIRE(kernels.run("shares", config, out.at, count));
  std::vector<float> expected(count);
  for (unsigned i = 0; i < count; ++i) expected[i] = static_cast<float>(count - 1 - i);
  CHECK(out.read() == expected);
  config.dynamic_shared_bytes = bytes + 4;
  CHECK(kernels.run("shares", config, out.at, count).error().code == ErrorCode::kLimitExceeded);
}

}  // namespace broach
