#include "runtime/window_rows/chunk256_launch.hpp"

#include <dlfcn.h>

#include "runtime/cuda/cuda_device.hpp"
#include "runtime/window_rows/state.hpp"
#include "tests/runtime/allocation_count.hpp"
#include "tests/runtime/cuda/fake_driver.hpp"
#include "tests/support/catch.hpp"

namespace broach {
namespace {

/// An operator on the stand-in CUDA driver.
std::shared_ptr<const WindowRows::State> operator_on_fake() {
  auto device = runtime::cuda::open_cuda_device(0, BROACH_FAKE_CUDA);
  REQUIRE(device);
  auto state = std::make_shared<WindowRows::State>();
  state->device = *device;
  state->shape.head_dim = 64;
  state->shape.gqa_ratio = 2;
  state->shape.window = 100;
  state->shape.arith = Arith::kChunk256;
  specializer::Plan plan;
  plan.entries = {{"part", 256, 0}, {"merge", 128, 0}};
  const std::vector<std::byte> binary(64);
  const std::vector<std::string> names{"part", "merge"};
  auto module = (*device)->load(binary, names);
  REQUIRE(module);
  state->first.module = *std::move(module);
  auto launch = runtime::make_decode_launch(state->shape, plan, *state->first.module, 132);
  REQUIRE(launch);
  state->first.launch = *std::move(launch);
  state->serving = state->first.launch.get();
  return state;
}

}  // namespace

TEST_CASE("a decode allocates nothing and launches exactly its two kernels", "[runtime][decode]") {
#if defined(__SANITIZE_ADDRESS__)
  BROACH_SKIP("AddressSanitizer counts allocations itself");
#endif
  void* handle = dlopen(BROACH_FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
  REQUIRE(handle != nullptr);
  FakeCuda& fake = *reinterpret_cast<FakeCuda* (*)()>(dlsym(handle, "fake_cuda"))();
  fake = FakeCuda{};
  const WindowRows op(operator_on_fake());
  alignas(16) static std::byte memory[65536];
  static const std::int32_t zero = 0;
  DecodeArgs args;
  args.q = args.k = args.v = args.workspace = args.out = memory;
  args.workspace_bytes = sizeof memory;
  args.positions = args.slots = &zero;
  args.rows = args.kv_heads = args.slot_count = 1;
  args.length = 8;
  args.q_head_stride = args.out_head_stride = args.k_position_stride = args.v_position_stride = 64;
  REQUIRE(op.decode(args, nullptr));  // The fake context stack has grown to its size.
  fake.launches = 0;

  const std::uint64_t before = test::allocation_count();
  const bool launched = op.decode(args, nullptr).ok();
  const std::uint64_t after = test::allocation_count();
  CHECK(launched);
  CHECK(after == before);
  CHECK(fake.launches == 2);

  args.rows = 0;
  CHECK(op.decode(args, nullptr));
  CHECK(fake.launches == 2);

  // The counter itself sees an allocation.
  int* volatile kept = new int(1);
  delete kept;
  CHECK(test::allocation_count() > after);
}

}  // namespace broach
