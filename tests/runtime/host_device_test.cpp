#include "runtime/host/host_device.hpp"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cfenv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace broach::runtime {
namespace {

struct Params {
  float* out;
  float a;
  float b;
};

// A kernel that writes what its block, its operands and its definition say.
constexpr const char* kSource = R"(
#include "common/ops.cuh"
#include "common/platform.cuh"
struct Params { float* out; float a; float b; };
struct Shared { float value[64]; };
BROACH_GLOBAL(host_test, 64, Params, Shared) {
  const unsigned at = thread.block_x() * 64 + thread.index();
  shared.value[thread.index()] = broach::mul_rn(params.a, params.b);
  broach::sync_block(thread);
  if (params.a == 7.0f && thread.block_x() == 3 && thread.index() == 9) {
    broach::fail(thread, "planted", 41);
  }
  params.out[at] = broach::add_rn(shared.value[63 - thread.index()], BIAS);
}
)";

std::vector<std::byte> compiled(const std::string& options, const std::string& source = kSource) {
  const test::TempDir dir;
  const std::string base = (dir.path() / "kernel").string();
  std::ofstream(base + ".cpp") << source;
  const std::string command = std::string(BROACH_TEST_CXX) +
                              " -std=c++20 -O1 -ffp-contract=off -fPIC -shared "
                              "-fvisibility=hidden -I" BROACH_TEST_KERNEL_SRC " " +
                              options + " " + base + ".cpp -o " + base + ".so";
  REQUIRE(std::system(command.c_str()) == 0);
  std::ifstream file(base + ".so", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::byte> binary(bytes.size());
  std::memcpy(binary.data(), bytes.data(), bytes.size());
  return binary;
}

const std::vector<std::byte>& kernel_with_bias(int bias) {
  static const std::vector<std::byte> zero = compiled("-DBIAS=0.0f");
  static const std::vector<std::byte> one = compiled("-DBIAS=1.0f");
  return bias == 0 ? zero : one;
}

const std::vector<std::string> kFunctions{"host_test"};

LaunchConfig config_of(const Params& params, std::uint32_t blocks) {
  LaunchConfig config;
  config.grid[0] = blocks;
  config.block[0] = 64;
  config.params = &params;
  config.params_bytes = sizeof params;
  return config;
}

/// Launches over `blocks` blocks and gives every output.
std::vector<float> launched(Module& module, float a, float b, std::uint32_t blocks = 5) {
  std::vector<float> out(blocks * 64, -1.0F);
  const Params params{out.data(), a, b};
  auto function = module.function("host_test");
  REQUIRE(function);
  REQUIRE((*function)->launch(config_of(params, blocks)));
  return out;
}

std::unique_ptr<Module> loaded(Device& device, int bias = 0) {
  auto module = device.load(kernel_with_bias(bias), kFunctions);
  if (!module) FAIL(module.error().message);
  return std::move(*module);
}

}  // namespace

TEST_CASE("every block of a grid runs, on any number of threads", "[runtime][host_device]") {
  const std::uint32_t threads = GENERATE(1u, 2u, 5u);
  const auto device = open_host_device(threads);
  const auto module = loaded(*device);
  for (int repeat = 0; repeat < 3; ++repeat) {
    CHECK((launched(*module, 3, 2, 9) == std::vector<float>(9 * 64, 6.0F)));
  }
}

TEST_CASE("where no thread can be started the caller's runs the blocks",
          "[runtime][host_device][multiprocess]") {
  const auto device = open_host_device(2);
  const auto module = loaded(*device);
  const pid_t child = ::fork();
  if (child == 0) {
    // Root is not bound by the limit.
    if (::geteuid() == 0 && ::setuid(65534) != 0) ::_exit(77);
    const rlimit none{0, 0};
    if (::setrlimit(RLIMIT_NPROC, &none) != 0) ::_exit(77);
    bool started = true;
    try {
      std::thread([] {}).join();
    } catch (const std::system_error&) {
      started = false;
    }
    if (started) ::_exit(77);
    std::fesetround(FE_UPWARD);
    std::vector<float> out(5 * 64, -1.0F);
    const Params params{out.data(), 3, 2};
    const auto function = module->function("host_test");
    const bool ran = function && (*function)->launch(config_of(params, 5));
    const bool kept = std::fegetround() == FE_UPWARD;
    ::_exit(ran && kept && out == std::vector<float>(5 * 64, 6.0F) ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
    BROACH_SKIP("threads cannot be forbidden here");
  CHECK(status == 0);
}

TEST_CASE("modules loaded one after another and side by side are each their own",
          "[runtime][host_device]") {
  // File descriptors are used again after a load; the loader must not take that for the same file.
  const auto device = open_host_device(2);
  for (int repeat = 0; repeat < 3; ++repeat) {
    const auto zero = loaded(*device, 0);
    CHECK(launched(*zero, 3, 2)[0] == 6.0F);
    const auto one = loaded(*device, 1);
    CHECK(launched(*one, 3, 2)[0] == 7.0F);
    CHECK(launched(*zero, 3, 2)[0] == 6.0F);
  }
}

TEST_CASE("the caller's floating-point environment changes no bit", "[runtime][host_device]") {
  const auto device = open_host_device(2);
  const auto module = loaded(*device);
  const float tiny = 0x1p-100F;  // tiny * tiny / 2^-60 is subnormal; 1 / 3 is not exact.
  const auto usual = launched(*module, tiny, 0x1.234p-40F);
  const auto thirds = launched(*module, 0x1.555556p-2F, 0x1.000002p0F);
  std::fenv_t saved;
  std::fegetenv(&saved);
  std::fesetround(FE_UPWARD);
#if defined(__x86_64__)
  _mm_setcsr(_mm_getcsr() | 0x8040);  // Flush subnormal results and operands.
#endif
  const auto fresh = open_host_device(2);  // Its threads start under this environment.
  const auto fresh_module = loaded(*fresh);
  const auto under_old = launched(*module, tiny, 0x1.234p-40F);
  const auto under_new = launched(*fresh_module, tiny, 0x1.234p-40F);
  const auto thirds_new = launched(*fresh_module, 0x1.555556p-2F, 0x1.000002p0F);
  std::fesetenv(&saved);
  CHECK(usual[0] > 0.0F);
  CHECK(usual[0] < 0x1p-126F);
  CHECK((under_old == usual));
  CHECK((under_new == usual));
  CHECK((thirds_new == thirds));
}

TEST_CASE("launches from several threads each get their own outputs", "[runtime][host_device]") {
  const auto device = open_host_device(2);
  const auto module = loaded(*device);
  auto function = module->function("host_test");
  REQUIRE(function);
  std::vector<std::vector<float>> outs(4, std::vector<float>(320, -1.0F));
  std::vector<int> ok(4, 0);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < outs.size(); ++i) {
    threads.emplace_back([&, i] {
      const Params params{outs[i].data(), static_cast<float>(i), 2};
      ok[i] = (*function)->launch(config_of(params, 5)) ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < outs.size(); ++i) {
    CHECK(ok[i] == 1);
    CHECK((outs[i] == std::vector<float>(320, 2.0F * static_cast<float>(i))));
  }
}

TEST_CASE("a block's failure is the launch's, and the next launch is well",
          "[runtime][host_device]") {
  const auto device = open_host_device(2);
  const auto module = loaded(*device);
  std::vector<float> out(320);
  const Params params{out.data(), 7, 2};
  auto function = module->function("host_test");
  REQUIRE(function);
  const auto failed = (*function)->launch(config_of(params, 5));
  REQUIRE_FALSE(failed);
  CHECK(failed.error().code == ErrorCode::kInvalidArgument);
  CHECK(failed.error().message == "host_test, block (3, 0, 0), thread 9: planted: 41");
  CHECK(launched(*module, 3, 2)[0] == 6.0F);
}

TEST_CASE("a launch that the kernel was not compiled for is refused with the numbers",
          "[runtime][host_device]") {
  const auto device = open_host_device(1);
  const auto module = loaded(*device);
  auto function = module->function("host_test");
  REQUIRE(function);
  std::vector<float> out(64);
  const Params params{out.data(), 1, 1};
  const auto message = [&](const auto& spoil) {
    LaunchConfig config = config_of(params, 1);
    spoil(config);
    const auto ran = (*function)->launch(config);
    return ran ? std::string("ran") : ran.error().message;
  };
  CHECK(message([](LaunchConfig& c) { c.block[0] = 128; }) ==
        "a launch of host_test has blocks of 128 threads; it was compiled for 64");
  CHECK(message([](LaunchConfig& c) { c.params_bytes = 12; }) ==
        "a launch of host_test gets 12 bytes of parameters; it takes 16");
  CHECK(message([](LaunchConfig& c) { c.grid[1] = 0; }) ==
        "a launch of host_test has an empty grid: 1 x 0 x 1");
  const std::string shared = message([](LaunchConfig& c) { c.dynamic_shared_bytes = 1u << 30; });
  CHECK(shared.find("needs 1073742080 bytes of shared memory") != std::string::npos);
  CHECK(module->function("other").error().code == ErrorCode::kNotFound);
}

namespace {

// Each thread of each block says where it stands; the variable is what every output starts from.
constexpr const char* kCubeSource = R"(
#include "broach/launch_geometry.h"
#include "common/platform.cuh"
struct Params { unsigned* out; };
extern "C" __attribute__((visibility("default"))) const BroachLaunchGeometry
    broach_geometry_cube;
extern "C" const BroachLaunchGeometry broach_geometry_cube = {
    BROACH_GEOMETRY_MAGIC, BROACH_GEOMETRY_VERSION, {32, 4, 2}, 0, {0, 0, 0}, {0, 0, 0}};
__attribute__((visibility("default"))) unsigned start = 0;
BROACH_GLOBAL(cube, 256, Params, broach::NoShared) {
  const unsigned block =
      (thread.block_z() * thread.grid_y() + thread.block_y()) * thread.grid_x() + thread.block_x();
  params.out[block * 256 + thread.index()] = start + block * 256 + thread.index();
}
)";

const std::vector<std::byte>& cube_kernel() {
  static const std::vector<std::byte> binary = compiled("", kCubeSource);
  return binary;
}

std::unique_ptr<Module> loaded_cube(Device& device) {
  const std::vector<std::string> functions{"cube"};
  auto module = device.load(cube_kernel(), functions);
  if (!module) FAIL(module.error().message);
  return std::move(*module);
}

LaunchConfig cube_config(const void* params) {
  LaunchConfig config;
  config.grid[0] = 2;
  config.grid[1] = 3;
  config.grid[2] = 2;
  config.block[0] = 32;
  config.block[1] = 4;
  config.block[2] = 2;
  config.params = params;
  config.params_bytes = sizeof(void*);
  return config;
}

}  // namespace

TEST_CASE("a grid and a block of three dimensions run whole, in either form of parameters",
          "[runtime][host_device]") {
  const auto device = open_host_device(2);
  const auto module = loaded_cube(*device);
  auto function = module->function("cube");
  REQUIRE(function);
  std::vector<unsigned> out(12 * 256, ~0U), expected(out.size());
  for (unsigned i = 0; i < expected.size(); ++i) expected[i] = i;
  unsigned* const at = out.data();
  REQUIRE((*function)->launch(cube_config(&at)));
  CHECK((out == expected));

  std::fill(out.begin(), out.end(), ~0U);
  LaunchConfig config = cube_config(nullptr);
  const void* const arguments[] = {&at};
  config.arguments = arguments;
  config.overlap = Overlap::kProgrammatic;
  REQUIRE((*function)->launch(config));
  CHECK((out == expected));
}

TEST_CASE("a block of another form, several arguments and what the host lacks are refused",
          "[runtime][host_device]") {
  const auto device = open_host_device(1);
  const auto module = loaded_cube(*device);
  auto function = module->function("cube");
  REQUIRE(function);
  std::vector<unsigned> out(12 * 256);
  unsigned* const at = out.data();
  const auto refusal = [&](const auto& spoil) {
    LaunchConfig config = cube_config(&at);
    spoil(config);
    const auto ran = (*function)->launch(config);
    return ran ? Error{} : ran.error();
  };
  CHECK(refusal([](LaunchConfig& c) { std::swap(c.block[1], c.block[2]); }).message ==
        "a launch of cube has blocks of 32 x 2 x 4 threads; it was compiled for 32 x 4 x 2");
  CHECK(refusal([](LaunchConfig& c) { c.block[0] = 256, c.block[1] = c.block[2] = 1; }).message ==
        "a launch of cube has blocks of 256 threads; it was compiled for 32 x 4 x 2");
  const void* const arguments[] = {&at, &at};
  const Error several = refusal([&](LaunchConfig& c) {
    c.params = nullptr;
    c.arguments = arguments;
  });
  CHECK(several.code == ErrorCode::kInvalidArgument);
  CHECK(several.message ==
        "a launch of cube gets 2 arguments; a kernel on the host takes one struct of 8 bytes");
  const Error cluster = refusal([](LaunchConfig& c) { c.cluster[0] = 2; });
  CHECK(cluster.code == ErrorCode::kUnsupported);
  CHECK(cluster.message == "a launch of cube wants clusters of blocks; the host has none of that");
  CHECK(refusal([](LaunchConfig& c) { c.grid_sync = GridSync::kCooperative; }).code ==
        ErrorCode::kUnsupported);
}

TEST_CASE("a host kernel's variable is found and written by name", "[runtime][host_device]") {
  const auto device = open_host_device(1);
  const auto module = loaded_cube(*device);
  const auto symbol = module->symbol("start");
  REQUIRE(symbol);
  CHECK(symbol->bytes == sizeof(unsigned));
  const unsigned start = 1000;
  REQUIRE(module->set_symbol("start", std::as_bytes(std::span(&start, 1)), nullptr));
  auto function = module->function("cube");
  REQUIRE(function);
  std::vector<unsigned> out(12 * 256);
  unsigned* const at = out.data();
  REQUIRE((*function)->launch(cube_config(&at)));
  CHECK(out[0] == 1000);
  CHECK(out.back() == 1000 + 12 * 256 - 1);

  // Neither a name that nothing has, nor a library's, nor a function.
  for (const char* name : {"absent", "stdout", "broach_host_entry_cube"}) {
    const auto absent = module->symbol(name);
    REQUIRE_FALSE(absent);
    CHECK(absent.error().code == ErrorCode::kNotFound);
    CHECK(absent.error().message.find(name) != std::string::npos);
  }
  const std::uint64_t large = 0;
  CHECK(module->set_symbol("start", std::as_bytes(std::span(&large, 1)), nullptr).error().message ==
        "the variable start has 4 bytes; 8 were given");
}

TEST_CASE("bytes that are no host kernel are refused with the reason", "[runtime][host_device]") {
  const auto device = open_host_device(1);
  const auto load = [&](const std::vector<std::byte>& bytes, const std::string& function) {
    const std::vector<std::string> functions{function};
    const auto module = device->load(bytes, functions);
    return module ? Error{} : module.error();
  };
  const Error garbage = load(std::vector<std::byte>(4096, std::byte{7}), "host_test");
  CHECK(garbage.code == ErrorCode::kDriver);
  CHECK(garbage.message.find("the loader refuses a host kernel of 4096 bytes") == 0);
  const Error absent = load(kernel_with_bias(0), "other");
  CHECK(absent.code == ErrorCode::kDamaged);
  CHECK(absent.message == "the host object does not hold the kernel other");
  const Error version =
      load(compiled("",
                    "#include \"host/abi.h\"\n#undef BROACH_HOST_ABI_VERSION\n"
                    "#define BROACH_HOST_ABI_VERSION 99u\n" +
                        std::string(kSource).replace(std::string(kSource).find("BIAS"), 4, "0.0f")),
           "host_test");
  CHECK(version.code == ErrorCode::kDamaged);
  CHECK(version.message == "the kernel host_test was compiled for host ABI 99; this build runs 1");
}

TEST_CASE("fresh device memory is aligned and reads as NaN", "[runtime][host_device]") {
  const auto device = open_host_device(1);
  auto memory = device->allocate(1000);
  REQUIRE(memory);
  CHECK(reinterpret_cast<std::uintptr_t>(*memory) % 256 == 0);
  float value = 0;
  REQUIRE(device->copy_to_host(&value, *memory, sizeof value));
  CHECK(value != value);
  const float written = 3;
  REQUIRE(device->copy_to_device(*memory, &written, sizeof written));
  REQUIRE(device->copy_to_host(&value, *memory, sizeof value));
  CHECK(value == 3);
  device->free(*memory);
  auto empty = device->allocate(0);
  REQUIRE(empty);
  CHECK(*empty != nullptr);
  device->free(*empty);
}

TEST_CASE("a host kernel's live limits are its record's", "[runtime][host_device]") {
  const auto device = open_host_device(1);
  const auto module = loaded(*device);
  auto function = module->function("host_test");
  REQUIRE(function);
  const auto limits = (*function)->live_limits();
  REQUIRE(limits);
  CHECK(limits->function == "host_test");
  CHECK(limits->static_shared == 256U);
  CHECK(limits->max_threads == 64U);
}

}  // namespace broach::runtime
