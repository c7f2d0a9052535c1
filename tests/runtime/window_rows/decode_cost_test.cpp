#include "runtime/window_rows/chunk256_launch.hpp"

#include <dlfcn.h>

#include "runtime/cuda/cuda_device.hpp"
#include "runtime/operator.hpp"
#include "specializer/window_rows/shape.hpp"
#include "tests/runtime/allocation_count.hpp"
#include "tests/runtime/cuda/fake_driver.hpp"
#include "tests/support/catch.hpp"

namespace broach {
namespace {

/// An operator on the stand-in CUDA driver.
std::shared_ptr<const runtime::Operator> operator_on_fake() {
  auto device = runtime::cuda::open_cuda_device(0, BROACH_FAKE_CUDA);
  REQUIRE(device);
  WindowRowsShape shape;
  shape.head_dim = 64;
  shape.gqa_ratio = 2;
  shape.window = 100;
  shape.arith = Arith::kChunk256;
  specializer::Plan plan;
  plan.entries = {{"partial", 256, 0}, {"combine", 128, 0}};
  const std::vector<std::byte> binary(64);
  const std::vector<std::string> names{"partial", "combine"};
  auto module = (*device)->load(binary, names);
  REQUIRE(module);
  auto launch = runtime::make_decode_launch(shape, plan, **module, 132);
  REQUIRE(launch);
  return std::make_shared<runtime::Operator>(
      specializer::shape_of(shape), *device,
      runtime::Operator::Loaded{{}, *std::move(module), *std::move(launch)});
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
  const WindowRowsDecode op(operator_on_fake());
  alignas(16) static std::byte memory[65536];
  static const std::int32_t zero = 0;
  WindowRowsDecodeArgs args;
  args.attention.q = memory;
  args.cache.k = args.cache.v = args.workspace = args.attention.out = memory;
  args.workspace_bytes = sizeof memory;
  args.positions = args.slots = &zero;
  args.attention.rows = args.cache.kv_heads = args.cache.slots = 1;
  args.cache.length = 8;
  args.attention.q_head_stride = args.attention.out_head_stride = args.cache.k_position_stride =
      args.cache.v_position_stride = 64;
  REQUIRE(op.launch(args, nullptr));  // The fake context stack has grown to its size.
  fake.launches = 0;

  const std::uint64_t before = test::allocation_count();
  const bool launched = op.launch(args, nullptr).ok();
  const std::uint64_t after = test::allocation_count();
  CHECK(launched);
  CHECK(after == before);
  CHECK(fake.launches == 2);

  args.attention.rows = 0;
  CHECK(op.launch(args, nullptr));
  CHECK(fake.launches == 2);

  // The counter itself sees an allocation.
  int* volatile kept = new int(1);
  delete kept;
  CHECK(test::allocation_count() > after);
}

}  // namespace broach
