#include "runtime/hip/hip_module.hpp"

#include <dlfcn.h>

#include <string>
#include <vector>

#include "runtime/hip/hip_device.hpp"
#include "tests/runtime/hip/fake_hip.hpp"
#include "tests/support/catch.hpp"

namespace broach::runtime::hip {
namespace {

/// A module with one function, on a fresh stand-in run time.
class Fixture {
 public:
  explicit Fixture(const char* library = BROACH_FAKE_HIP) {
    void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    REQUIRE(handle != nullptr);
    fake = reinterpret_cast<FakeHip* (*)()>(dlsym(handle, "fake_hip"))();
    *fake = FakeHip{};
    auto opened = open_hip_device(0, library);
    if (!opened) FAIL(opened.error().message);
    device = *std::move(opened);
    const std::vector<std::string> names{"part"};
    auto loaded = device->load(std::vector<std::byte>(64), names);
    REQUIRE(loaded);
    module = *std::move(loaded);
    auto found = module->function("part");
    REQUIRE(found);
    part = *found;
  }

  FakeHip* fake = nullptr;
  std::shared_ptr<Device> device;
  std::unique_ptr<Module> module;
  const Function* part = nullptr;
};

LaunchConfig config_of(std::span<const void* const> arguments) {
  LaunchConfig config;
  config.grid[0] = 5;
  config.grid[1] = 6;
  config.grid[2] = 7;
  config.block[0] = 16;
  config.block[1] = 4;
  config.block[2] = 2;
  config.dynamic_shared_bytes = 1000;
  config.stream = reinterpret_cast<void*>(0x77);
  config.arguments = arguments;
  return config;
}

const int kFirst = 42;
const double kSecond = 2.5;
const void* const kArguments[] = {&kFirst, &kSecond};

}  // namespace

TEST_CASE("a HIP launch passes three dimensions and several arguments on", "[runtime][hip]") {
  Fixture hip;
  LaunchConfig config = config_of(kArguments);
  const bool cooperative = GENERATE(false, true);
  if (cooperative) config.grid_sync = GridSync::kCooperative;
  REQUIRE(hip.part->launch(config));
  CHECK(hip.fake->launches == (cooperative ? 0 : 1));
  CHECK(hip.fake->cooperative_launches == (cooperative ? 1 : 0));
  CHECK(hip.fake->grid[0] == 5);
  CHECK(hip.fake->grid[1] == 6);
  CHECK(hip.fake->grid[2] == 7);
  CHECK(hip.fake->block[0] == 16);
  CHECK(hip.fake->block[1] == 4);
  CHECK(hip.fake->block[2] == 2);
  CHECK(hip.fake->dynamic_shared_bytes == 1000);
  CHECK(hip.fake->stream == 0x77);
  CHECK(hip.fake->first_argument == 42);
  CHECK(hip.fake->second_argument == 2.5);

  const int number = 7;
  config = config_of({});
  config.dynamic_shared_bytes = 0;
  config.params = &number;
  config.params_bytes = sizeof number;
  REQUIRE(hip.part->launch(config));
  CHECK(hip.fake->first_argument == 7);
}

TEST_CASE("HIP refuses what it lacks by name, without a launch", "[runtime][hip]") {
  Fixture hip(BROACH_FAKE_HIP_OLD);
  LaunchConfig config = config_of(kArguments);
  const auto refusal = [&] {
    const auto refused = hip.part->launch(config);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::kUnsupported);
    return refused.error().message;
  };
  config.cluster[0] = 2;
  config.cluster[1] = config.cluster[2] = 1;
  CHECK(
      refusal() ==
      "launching part with grid 5x6x7, 16x4x2 threads, clusters of 2x1x1 blocks and 1000 bytes of "
      "dynamic shared memory on Fake MI250X: AMD's chips have no clusters of blocks");
  config.cluster[0] = 0;
  config.overlap = Overlap::kProgrammatic;
  CHECK(refusal().find("HIP has no programmatic dependent launch") != std::string::npos);
  config.overlap = Overlap::kNone;
  config.grid_sync = GridSync::kCooperative;
  CHECK(refusal().find("lacks hipModuleLaunchCooperativeKernel; ROCm 5.5 has it") !=
        std::string::npos);
  CHECK(hip.fake->launches == 0);
}

TEST_CASE("a HIP module's variable is found and written by name", "[runtime][hip]") {
  Fixture hip;
  const auto symbol = hip.module->symbol("table");
  REQUIRE(symbol);
  CHECK(symbol->address == reinterpret_cast<void*>(kFakeHipVariable));
  CHECK(symbol->bytes == kFakeHipVariableBytes);
  const std::vector<std::byte> bytes(40);
  REQUIRE(hip.module->set_symbol("table", bytes, reinterpret_cast<void*>(0x77)));
  CHECK(hip.fake->copied_to == kFakeHipVariable);
  CHECK(hip.fake->copied_bytes == 40);
  CHECK(hip.fake->copied_on_stream == 0x77);
  const auto absent = hip.module->set_symbol("absent", bytes, nullptr);
  REQUIRE_FALSE(absent);
  CHECK(absent.error().code == ErrorCode::kNotFound);
  CHECK(absent.error().message.find("the binary has no variable absent") == 0);
  const std::vector<std::byte> more(49);
  CHECK(hip.module->set_symbol("table", more, nullptr).error().message ==
        "the variable table has 48 bytes; 49 were given");
}

}  // namespace broach::runtime::hip
