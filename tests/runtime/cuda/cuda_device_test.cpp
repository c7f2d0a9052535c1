#include "runtime/cuda/cuda_device.hpp"

#include <dlfcn.h>

#include "runtime/cuda/driver.hpp"
#include "tests/runtime/cuda/fake_driver.hpp"
#include "tests/support/catch.hpp"

namespace broach::runtime::cuda {
namespace {

/// A device on a fresh stand-in driver.
class Fixture {
 public:
  explicit Fixture(const char* library = BROACH_FAKE_CUDA) : library_(library) {
    void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    REQUIRE(handle != nullptr);
    fake = reinterpret_cast<FakeCuda* (*)()>(dlsym(handle, "fake_cuda"))();
    *fake = FakeCuda{};
    push_ = reinterpret_cast<int (*)(void*)>(dlsym(handle, "cuCtxPushCurrent_v2"));
    pop_ = reinterpret_cast<int (*)(void**)>(dlsym(handle, "cuCtxPopCurrent_v2"));
    current_ = reinterpret_cast<int (*)(void**)>(dlsym(handle, "cuCtxGetCurrent"));
  }

  Result<std::shared_ptr<Device>> open(int ordinal = 0) {
    return open_cuda_device(ordinal, library_);
  }
  void push(std::uintptr_t context) { push_(reinterpret_cast<void*>(context)); }
  void pop() {
    void* popped = nullptr;
    pop_(&popped);
  }
  std::uintptr_t current() {
    void* context = nullptr;
    current_(&context);
    return reinterpret_cast<std::uintptr_t>(context);
  }

  FakeCuda* fake = nullptr;

 private:
  std::string library_;
  int (*push_)(void*) = nullptr;
  int (*pop_)(void**) = nullptr;
  int (*current_)(void**) = nullptr;
};

const std::vector<std::byte> kBinary(64);
const std::vector<std::string> kNames{"part"};

LaunchConfig launch_of(const int& number) {
  LaunchConfig config;
  config.grid[0] = 5;
  config.grid[1] = 8;
  config.grid[2] = 3;
  config.block[0] = 256;
  config.dynamic_shared_bytes = 50000;
  config.params = &number;
  config.params_bytes = sizeof number;
  config.stream = reinterpret_cast<void*>(0x77);
  return config;
}

}  // namespace

TEST_CASE("a device says what it is and gives its context back", "[runtime][cuda]") {
  Fixture cuda;
  {
    auto device = cuda.open();
    REQUIRE(device);
    CHECK((*device)->name() == "Fake H200");
    CHECK((*device)->target().name == "sm_90a");
    CHECK((*device)->driver().find("(CUDA 13.0)") != std::string_view::npos);
    CHECK(cuda.fake->retained == 1);
    CHECK(cuda.fake->released == 0);
  }
  CHECK(cuda.fake->released == 1);
  CHECK(cuda.current() == 0);
}

TEST_CASE("a device that is not there is told with how many are", "[runtime][cuda]") {
  Fixture cuda;
  const auto absent = cuda.open(1);
  REQUIRE_FALSE(absent);
  CHECK(absent.error().code == ErrorCode::kNotFound);
  CHECK(absent.error().message == "no device \"cuda:1\": the driver has 1 device");
  cuda.fake->init_status = kNoDevice;
  const auto none = cuda.open();
  REQUIRE_FALSE(none);
  CHECK(none.error().code == ErrorCode::kNotFound);
  CHECK(cuda.fake->retained == 0);
}

TEST_CASE("a launch passes everything on and leaves no context behind", "[runtime][cuda]") {
  Fixture cuda;
  auto device = cuda.open();
  REQUIRE(device);
  auto module = (*device)->load(kBinary, kNames);
  REQUIRE(module);
  CHECK(cuda.fake->loads == 1);
  auto part = (*module)->function("part");
  REQUIRE(part);
  const int number = 4711;
  REQUIRE((*part)->launch(launch_of(number)));
  CHECK(cuda.fake->launches == 1);
  CHECK(cuda.fake->launched_function == kFakeFunction);
  CHECK(cuda.fake->launched_in_context == kFakePrimary);
  CHECK(cuda.fake->launched_on_stream == 0x77);
  CHECK(cuda.fake->launched_grid[0] == 5);
  CHECK(cuda.fake->launched_grid[1] == 8);
  CHECK(cuda.fake->launched_grid[2] == 3);
  CHECK(cuda.fake->launched_threads == 256);
  CHECK(cuda.fake->launched_dynamic_shared == 50000);
  CHECK(cuda.fake->launched_first_int == 4711);
  CHECK(cuda.current() == 0);
  module->reset();
  CHECK(cuda.fake->unloads == 1);
  CHECK(cuda.current() == 0);
}

TEST_CASE("a launch takes a block of three dimensions and several arguments of any type",
          "[runtime][cuda]") {
  Fixture cuda;
  auto device = cuda.open();
  REQUIRE(device);
  auto module = (*device)->load(kBinary, kNames);
  REQUIRE(module);
  auto part = (*module)->function("part");
  REQUIRE(part);
  cuda.fake->second_argument = true;
  const int first = 42;
  const double second = 2.5;
  const void* const arguments[] = {&first, &second};
  LaunchConfig config = launch_of(first);
  config.params = nullptr;
  config.arguments = arguments;
  config.block[0] = 16;
  config.block[1] = 4;
  config.block[2] = 2;
  REQUIRE((*part)->launch(config));
  CHECK(cuda.fake->launched_threads == 16);
  CHECK(cuda.fake->launched_block_y == 4);
  CHECK(cuda.fake->launched_block_z == 2);
  CHECK(cuda.fake->launched_first_int == 42);
  CHECK(cuda.fake->launched_second_double == 2.5);
  CHECK(cuda.fake->extended_launches == 0);
}

TEST_CASE("clusters, grid-wide waits and overlap reach the driver as its attributes",
          "[runtime][cuda]") {
  Fixture cuda;
  auto device = cuda.open();
  REQUIRE(device);
  auto module = (*device)->load(kBinary, kNames);
  REQUIRE(module);
  auto part = (*module)->function("part");
  REQUIRE(part);
  const int number = 7;
  LaunchConfig config = launch_of(number);
  config.cluster[0] = 4;
  config.cluster[1] = 2;
  config.cluster[2] = 1;
  REQUIRE((*part)->launch(config));
  CHECK(cuda.fake->extended_launches == 1);
  CHECK(cuda.fake->launched_cluster[0] == 4);
  CHECK(cuda.fake->launched_cluster[1] == 2);
  CHECK(cuda.fake->launched_cluster[2] == 1);
  CHECK(cuda.fake->launched_cooperative == 0);
  CHECK(cuda.fake->launched_overlap == 0);
  CHECK(cuda.fake->launched_first_int == 7);
  CHECK(cuda.fake->launched_grid[2] == 3);
  CHECK(cuda.fake->launched_dynamic_shared == 50000);
  CHECK(cuda.fake->launched_on_stream == 0x77);
  CHECK(cuda.fake->large_clusters_allowed == 0);

  config = launch_of(number);
  config.grid_sync = GridSync::kCooperative;
  config.overlap = Overlap::kProgrammatic;
  REQUIRE((*part)->launch(config));
  CHECK(cuda.fake->launched_cooperative == 1);
  CHECK(cuda.fake->launched_overlap == 1);
  CHECK(cuda.fake->unknown_attributes == 0);
}

TEST_CASE("a cluster of more than eight blocks is allowed once a function", "[runtime][cuda]") {
  Fixture cuda;
  auto device = cuda.open();
  REQUIRE(device);
  auto module = (*device)->load(kBinary, kNames);
  REQUIRE(module);
  auto part = (*module)->function("part");
  REQUIRE(part);
  const int number = 7;
  LaunchConfig config = launch_of(number);
  config.cluster[0] = 16;
  config.cluster[1] = config.cluster[2] = 1;
  REQUIRE((*part)->launch(config));
  REQUIRE((*part)->launch(config));
  CHECK(cuda.fake->large_clusters_allowed == 1);
  CHECK(cuda.fake->kernel_large_clusters_allowed == 1);
}

TEST_CASE("a driver without extended launches names what it cannot do", "[runtime][cuda]") {
  Fixture cuda(BROACH_FAKE_CUDA_OLD);
  auto device = cuda.open();
  REQUIRE(device);
  auto module = (*device)->load(kBinary, kNames);
  REQUIRE(module);
  auto part = (*module)->function("part");
  REQUIRE(part);
  const int number = 7;
  LaunchConfig config = launch_of(number);
  config.grid_sync = GridSync::kCooperative;
  const auto refused = (*part)->launch(config);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kUnsupported);
  CHECK(refused.error().message ==
        "launching part with grid 5x8x3, 256 threads, grid-wide waits and 50000 bytes of dynamic "
        "shared memory on Fake H200 needs cuLaunchKernelEx, which the driver has since CUDA 11.8");
  CHECK(cuda.fake->launches == 0);
}

TEST_CASE("a variable is found and written by name, in the stream's order", "[runtime][cuda]") {
  const char* const library = GENERATE(BROACH_FAKE_CUDA, BROACH_FAKE_CUDA_OLD);
  Fixture cuda(library);
  auto device = cuda.open();
  REQUIRE(device);
  auto module = (*device)->load(kBinary, kNames);
  REQUIRE(module);
  const auto symbol = (*module)->symbol("table");
  REQUIRE(symbol);
  CHECK(symbol->address == reinterpret_cast<void*>(kFakeVariable));
  CHECK(symbol->bytes == kFakeVariableBytes);
  const std::vector<std::byte> bytes(kFakeVariableBytes, std::byte{0x5a});
  REQUIRE((*module)->set_symbol("table", bytes, reinterpret_cast<void*>(0x77)));
  CHECK(cuda.fake->copied_to == kFakeVariable);
  CHECK(cuda.fake->copied_bytes == kFakeVariableBytes);
  CHECK(cuda.fake->copied_first == 0x5a);
  CHECK(cuda.fake->copied_on_stream == 0x77);

  const auto absent = (*module)->symbol("absent");
  REQUIRE_FALSE(absent);
  CHECK(absent.error().code == ErrorCode::kNotFound);
  CHECK(absent.error().message.find("the binary has no variable absent") == 0);
  CHECK((*module)->set_symbol("absent", bytes, nullptr).error().code == ErrorCode::kNotFound);
  const std::vector<std::byte> more(kFakeVariableBytes + 1);
  const auto large = (*module)->set_symbol("table", more, nullptr);
  REQUIRE_FALSE(large);
  CHECK(large.error().message == "the variable table has 48 bytes; 49 were given");
  CHECK(cuda.current() == 0);
}

TEST_CASE("an engine's own context of the device is used as it is", "[runtime][cuda]") {
  Fixture cuda;
  auto device = cuda.open();
  REQUIRE(device);
  auto module = (*device)->load(kBinary, kNames);
  REQUIRE(module);
  auto part = (*module)->function("part");
  REQUIRE(part);
  const int number = 1;
  cuda.push(kFakeEngineContext);
  REQUIRE((*part)->launch(launch_of(number)));
  CHECK(cuda.fake->launched_in_context == kFakeEngineContext);
  CHECK(cuda.fake->launched_function == kFakeKernel);
  CHECK(cuda.current() == kFakeEngineContext);
  cuda.pop();

  // Another device's context is left alone and comes back.
  cuda.push(kFakeEngineContext + 1);
  REQUIRE((*part)->launch(launch_of(number)));
  CHECK(cuda.fake->launched_in_context == kFakePrimary);
  CHECK(cuda.current() == kFakeEngineContext + 1);
  cuda.pop();
}

TEST_CASE("a driver without libraries launches in the primary context", "[runtime][cuda]") {
  Fixture cuda(BROACH_FAKE_CUDA_OLD);
  auto device = cuda.open();
  REQUIRE(device);
  auto module = (*device)->load(kBinary, kNames);
  REQUIRE(module);
  auto part = (*module)->function("part");
  REQUIRE(part);
  const int number = 1;
  cuda.push(kFakeEngineContext);
  REQUIRE((*part)->launch(launch_of(number)));
  CHECK(cuda.fake->launched_function == kFakeFunction);
  CHECK(cuda.fake->launched_in_context == kFakePrimary);
  CHECK(cuda.current() == kFakeEngineContext);
  cuda.pop();
  module->reset();
  CHECK(cuda.fake->unloads == 1);
}

TEST_CASE("all the shared memory a block can have is allowed at load", "[runtime][cuda]") {
  Fixture cuda;
  auto device = cuda.open();
  REQUIRE(device);
  auto module = (*device)->load(kBinary, kNames);
  REQUIRE(module);
  CHECK(cuda.fake->dynamic_shared_allowed == 232448 - 1024);
  CHECK(cuda.fake->kernel_dynamic_shared_allowed == 232448 - 1024);
  auto part = (*module)->function("part");
  REQUIRE(part);
  const auto live = (*part)->live_limits();
  REQUIRE(live);
  CHECK(live->function == "part");
  CHECK(live->source == "device");
  CHECK(live->max_threads == 0U);
  CHECK(live->static_shared == 1024U);
  CHECK(live->constant_bytes == 20U);
  CHECK(live->stack_bytes == 30U);
  CHECK(live->registers == 40U);
  CHECK(live->max_dynamic_shared == 232448U - 1024U);
}

TEST_CASE("a refused binary is told with device, driver and log", "[runtime][cuda]") {
  Fixture cuda;
  auto device = cuda.open();
  REQUIRE(device);
  cuda.fake->load_status = kInvalidImage;
  cuda.fake->load_log = "ptxas fatal: made up";
  const auto module = (*device)->load(kBinary, kNames);
  REQUIRE_FALSE(module);
  CHECK(module.error().code == ErrorCode::kDriver);
  CHECK(module.error().message.find("Fake H200 (sm_90a, driver ") == 0);
  CHECK(module.error().message.find("refuses a binary of 64 bytes: CUDA_ERROR_INVALID_IMAGE") !=
        std::string::npos);
  CHECK(module.error().detail == "ptxas fatal: made up");
  CHECK(cuda.current() == 0);
}

TEST_CASE("a function that the binary lacks is named", "[runtime][cuda]") {
  Fixture cuda;
  auto device = cuda.open();
  REQUIRE(device);
  const std::vector<std::string> absent{"part", "absent"};
  const auto module = (*device)->load(kBinary, absent);
  REQUIRE_FALSE(module);
  CHECK(module.error().code == ErrorCode::kNotFound);
  CHECK(module.error().message == "the binary has no function absent");
  CHECK(cuda.fake->unloads == 1);
  auto loaded = (*device)->load(kBinary, kNames);
  REQUIRE(loaded);
  CHECK_FALSE((*loaded)->function("merge"));
}

TEST_CASE("a load does not disturb another thread's capture", "[runtime][cuda]") {
  Fixture cuda;
  auto device = cuda.open();
  REQUIRE(device);
  REQUIRE((*device)->load(kBinary, kNames));
  CHECK(cuda.fake->capture_mode_at_load == static_cast<int>(CaptureMode::kRelaxed));
  CHECK(cuda.fake->capture_mode == static_cast<int>(CaptureMode::kGlobal));
}

TEST_CASE("a capturing stream is seen, the default stream's implicit capture too",
          "[runtime][cuda]") {
  Fixture cuda;
  auto device = cuda.open();
  REQUIRE(device);
  const auto capturing = [&] {
    const auto answer = (*device)->capturing(nullptr);
    return answer && *answer;
  };
  CHECK_FALSE(capturing());
  cuda.fake->capture_answer = static_cast<int>(CaptureStatus::kActive);
  CHECK(capturing());
  cuda.fake->capture_answer = 0;
  cuda.fake->capture_status = kCaptureImplicit;
  CHECK(capturing());
  cuda.fake->capture_status = 1;
  CHECK_FALSE((*device)->capturing(nullptr));
}

TEST_CASE("a failed launch names the function, its grid and the fork that may be its cause",
          "[runtime][cuda]") {
  Fixture cuda;
  auto device = cuda.open();
  REQUIRE(device);
  auto module = (*device)->load(kBinary, kNames);
  REQUIRE(module);
  auto part = (*module)->function("part");
  REQUIRE(part);
  cuda.fake->launch_status = kNotInitialized;
  const int number = 1;
  const auto launched = (*part)->launch(launch_of(number));
  REQUIRE_FALSE(launched);
  CHECK(launched.error().code == ErrorCode::kDriver);
  CHECK(launched.error().message.find("launching part with grid 5x8x3, 256 threads") == 0);
  CHECK(launched.error().message.find("after the fork") != std::string::npos);
}

TEST_CASE("memory is refused by size and as out of memory", "[runtime][cuda]") {
  Fixture cuda;
  auto device = cuda.open();
  REQUIRE(device);
  const auto huge = (*device)->allocate(std::size_t{1} << 41);
  REQUIRE_FALSE(huge);
  CHECK(huge.error().code == ErrorCode::kOutOfMemory);
  CHECK(huge.error().message.find("2199023255552 bytes") != std::string::npos);
  auto memory = (*device)->allocate(16);
  REQUIRE(memory);
  int word = 0;
  CHECK((*device)->copy_to_device(*memory, &word, sizeof word));
  CHECK((*device)->copy_to_host(&word, *memory, sizeof word));
  CHECK((*device)->synchronize(nullptr));
  (*device)->free(*memory);
  CHECK(cuda.current() == 0);
}

}  // namespace broach::runtime::cuda
