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
#include "tests/runtime/window_rows/decode_case.hpp"
#include "tests/support/catch.hpp"
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
  DecodeCase c;
  c.shape.head_dim = 80;
  c.shape.gqa_ratio = 9;  // Two passes of query heads.
  c.shape.window = 300;
  c.shape.dtype = Dtype::kF16;
  c.shape.arith = Arith::kChunk256;
  c.shape.sinks = Switch::kOn;
  c.shape.kv_layout = GENERATE(values<KvLayout>(
      {{KvLayoutKind::kLinear, 0}, {KvLayoutKind::kRing, 310}, {KvLayoutKind::kPaged, 16}}));
  c.length = 704;
  c.rows = {{0, 0}, {1, 255}, {2, 703}, {2, 698}};
  c.sinks.assign(18, 0.5F);
  c.plants = {{'q', 3, 0, 4, 2, 0x7e00}};  // One head goes through float64.

  DecodeTensors t = lay_out(c);
  BroachWindowRowsDecode& params = t.params;
  params.window = 300;
  params.gqa_ratio = 9;
  params.layout = static_cast<int>(c.shape.kv_layout.kind);
  params.layout_length = static_cast<int>(c.shape.kv_layout.length);
  params.max_partials = static_cast<int>(runtime::chunk256_max_chunks(300, t.max_keys));
  std::vector<std::byte> workspace(runtime::chunk256_workspace_bytes(c.shape, 4, 2, t.max_keys),
                                   std::byte{0xff});
  params.workspace = workspace.data();
  const auto chunks = static_cast<std::uint32_t>(params.max_partials);
  launch(&window_rows::broach_host_entry_broach_window_rows_chunk256_partial,
         window_rows::broach_host_record_broach_window_rows_chunk256_partial, params, chunks, 2, 4);
  launch(&window_rows::broach_host_entry_broach_window_rows_chunk256_combine,
         window_rows::broach_host_record_broach_window_rows_chunk256_combine, params, 18, 4, 1);
  CHECK(wrong_outputs(c, t.out) == 0);
  CHECK((t.out == decode(c)));
}

}  // namespace broach::test
