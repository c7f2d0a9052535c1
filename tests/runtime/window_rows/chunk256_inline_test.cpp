// The chunk256 kernels compiled into the test itself, so that a sanitizer build watches every
// access they make: inputs, outputs, workspace and shared memory are allocated to the byte.
#include "window_rows/config.h"

namespace broach::window_rows {

constexpr Config kConfig{
    .arith = Arith::kChunk256,
    .head_dim = 80,
    .dtype = Half::kF16,
    .sinks = true,
    .checked = true,
    .generic = true,
};
static_assert(CheckedConfig<kConfig>::kOk);

}  // namespace broach::window_rows

#include "runtime/host/block.hpp"
#include "runtime/window_rows/chunk256_launch.hpp"
#include "runtime/window_rows/decode_args.hpp"
#include "tests/runtime/window_rows/float64_reference.hpp"
#include "window_rows/chunk256_decode.cuh"

namespace broach::test {
namespace {

void launch(BroachHostEntry entry, const BroachHostRecord& record,
            const BroachWindowRowsDecode& params, std::uint32_t x, std::uint32_t y,
            std::uint32_t z) {
  runtime::host::BlockRunner runner;
  runtime::host::BlockLaunch launch;
  launch.function = "chunk256";
  launch.entry = entry;
  launch.params = &params;
  launch.grid[0] = x;
  launch.grid[1] = y;
  launch.grid[2] = z;
  launch.block_threads = record.block_threads;
  launch.static_shared_bytes = record.static_shared_bytes;
  for (std::uint32_t i = 0; i < x * y * z; ++i) {
    const std::uint32_t block[3] = {i % x, i / x % y, i / x / y};
    const auto ran = runner.run(launch, block);
    if (!ran) FAIL(ran.error().message);
  }
}

}  // namespace

TEST_CASE("the kernels stay inside their buffers and have the compiled plan's bits",
          "[runtime][chunk256_inline]") {
  WindowRowsShape shape;
  shape.head_dim = 80;
  shape.gqa_ratio = 9;  // Two passes of query heads.
  shape.window = 300;
  shape.dtype = Dtype::kF16;
  shape.arith = Arith::kChunk256;
  shape.sinks = Switch::kOn;
  shape.kv_layout = GENERATE(values<KvLayout>(
      {{KvLayoutKind::kLinear, 0}, {KvLayoutKind::kRing, 310}, {KvLayoutKind::kPaged, 16}}));
  Problem p = made(decode_of(shape, {{0, 0}, {1, 255}, {2, 703}, {2, 698}}));
  query_at(p, 3, 4)[2] = 0x7e00;  // One head goes through float64.

  Outputs out(p.out_elems(), 0x7fff);
  std::vector<std::byte> workspace(runtime::chunk256_workspace_bytes(shape, 4, 2, p.max_keys),
                                   std::byte{0xff});
  WindowRowsDecodeArgs args = p.sizes().decode();
  args.attention.q = p.q.data();
  args.cache.k = p.k.data();
  args.cache.v = p.v.data();
  args.attention.out = out.data();
  args.positions = p.positions.data();
  args.slots = p.slots.data();
  args.cache.page_table = p.page_table.empty() ? nullptr : p.page_table.data();
  args.attention.sinks = p.sinks.data();
  args.workspace = workspace.data();
  args.workspace_bytes = workspace.size();
  BroachWindowRowsDecode params = runtime::decode_params(shape, args);
  params.max_partials = static_cast<int>(runtime::chunk256_max_chunks(300, p.max_keys));
  const auto chunks = static_cast<std::uint32_t>(params.max_partials);
  launch(&window_rows::broach_host_entry_broach_window_rows_chunk256_partial,
         window_rows::broach_host_record_broach_window_rows_chunk256_partial, params, chunks, 2, 4);
  launch(&window_rows::broach_host_entry_broach_window_rows_chunk256_combine,
         window_rows::broach_host_record_broach_window_rows_chunk256_combine, params, 18, 4, 1);
  CHECK(wrong_outputs(p, out) == 0);
  CHECK((out == run(kernel_of(shape), p)));
}

}  // namespace broach::test
