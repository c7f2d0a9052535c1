#include "runtime/window_rows/tile64_launch.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include "kernel_src/window_rows/params.h"
#include "runtime/window_rows/chunk256_launch.hpp"
#include "tests/runtime/recording_module.hpp"
#include "tests/support/catch.hpp"

namespace broach::runtime {
namespace {

using Combine = Tile64Schedule::Combine;

constexpr std::uint32_t kH200 = 132;

using RecordingModule = test::RecordingModule<BroachWindowRowsTile64Decode>;

WindowRowsShape shape_of(std::uint32_t window) {
  WindowRowsShape shape;
  shape.head_dim = 256;
  shape.gqa_ratio = 2;
  shape.window = window;
  shape.arith = Arith::kTile64;
  return shape;
}

specializer::Plan plan_of() {
  specializer::Plan plan;
  plan.entries = {{"decode", 128, 90000}, {"combine", 128, 0}};
  return plan;
}

WindowRowsDecodeArgs args_of(std::int32_t rows, std::int32_t max_keys = 0) {
  WindowRowsDecodeArgs args;
  args.attention.rows = rows;
  args.cache.kv_heads = 8;
  args.cache.length = 1536;
  args.max_keys = max_keys;
  return args;
}

}  // namespace

TEST_CASE("a workspace of more than 2^64 bytes is SIZE_MAX of them", "[runtime][tile64]") {
  constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
  WindowRowsShape shape;
  shape.head_dim = 512;
  shape.gqa_ratio = 32;
  const Tile64Schedule split{Tile64Schedule::Combine::kByKernel, 1};
  CHECK(tile64_workspace_bytes(shape, split, 65535, 65535, INT32_MAX) == kMost);
  CHECK(tile64_workspace_bytes(shape, split, 1, 1, INT32_MAX) < kMost);
  CHECK(chunk256_workspace_bytes(shape, 65535, 65535, INT32_MAX) == kMost);
  CHECK(chunk256_workspace_bytes(shape, 1, 1, INT32_MAX) < kMost);
}

TEST_CASE("max_tiles is the most tiles that any window can touch", "[runtime][tile64]") {
  for (const std::uint32_t window : {1U, 2U, 63U, 64U, 65U, 66U, 1023U, 1024U, 1025U}) {
    std::uint32_t most = 0;
    for (std::uint32_t first = 0; first < 128; ++first) {
      most = std::max(most, (first + window - 1) / 64 - first / 64 + 1);
    }
    CHECK(tile64_max_tiles(window, 40000) == most);
  }
  CHECK(tile64_max_tiles(0, 1) == 1);
  CHECK(tile64_max_tiles(0, 64) == 1);
  CHECK(tile64_max_tiles(0, 65) == 2);
}

TEST_CASE("one row spreads over the chip and many rows combine in place", "[runtime][tile64]") {
  const Tile64Schedule one = choose_tile64_schedule(1024, 1, 8, 0, kH200);
  CHECK(one.combine == Combine::kByLastCta);
  CHECK(one.tiles_a_split == 1);
  CHECK(choose_tile64_schedule(1024, 4, 8, 0, kH200).tiles_a_split == 3);
  CHECK(choose_tile64_schedule(1024, 16, 8, 0, kH200) == Tile64Schedule{});
  CHECK(choose_tile64_schedule(1024, 64, 8, 0, kH200) == Tile64Schedule{});
  CHECK(choose_tile64_schedule(1, 1, 1, 0, kH200) == Tile64Schedule{});  // a single tile
  // 512 tiles of one row: too many for one CTA to combine.
  CHECK(choose_tile64_schedule(0, 1, 8, 32768, kH200).combine == Combine::kByKernel);
}

TEST_CASE("a workspace that serves a batch serves every smaller one", "[runtime][tile64]") {
  RecordingModule module;
  const auto plan = plan_of();
  const WindowRowsShape shape = shape_of(1024);
  const auto launch = make_tile64_launch(shape, plan, module, kH200);
  REQUIRE(launch);
  std::size_t before = 0;
  for (std::int32_t rows = 1; rows <= 80; ++rows) {
    const std::size_t bytes = (*launch)->workspace_bytes(rows, 8, 0);
    CHECK(bytes >= before);
    CHECK(bytes >= tile64_workspace_bytes(shape, choose_tile64_schedule(1024, rows, 8, 0, kH200),
                                          rows, 8, 0));
    before = bytes;
  }
  // One row: 8 counters, then 16 heads x 17 tiles x 258 floats.
  CHECK((*launch)->workspace_bytes(1, 8, 0) == 4 * 16 + std::size_t{16} * 17 * 258 * 4);
}

TEST_CASE("each schedule launches its grid", "[runtime][tile64]") {
  RecordingModule module;
  const auto plan = plan_of();
  SECTION("in the block") {
    auto launch = make_tile64_launch(shape_of(1024), plan, module, kH200);
    REQUIRE(launch);
    REQUIRE((*launch)->launch(args_of(64), nullptr));
    REQUIRE(module.log.size() == 1);
    CHECK(module.log[0].config.grid[0] == 1);
    CHECK(module.log[0].config.grid[1] == 8);
    CHECK(module.log[0].config.grid[2] == 64);
    CHECK(module.log[0].config.dynamic_shared_bytes == 90000);
    CHECK(module.log[0].params.schedule == BROACH_TILE64_ONE_CTA);
    CHECK(module.log[0].params.tiles_a_split == 17);
  }
  SECTION("by the last to arrive") {
    auto launch = make_tile64_launch(shape_of(1024), plan, module, kH200);
    REQUIRE(launch);
    REQUIRE((*launch)->launch(args_of(4), nullptr));
    REQUIRE(module.log.size() == 1);
    CHECK(module.log[0].config.grid[0] == 6);  // 17 tiles, 3 a block
    CHECK(module.log[0].params.schedule == BROACH_TILE64_LAST_CTA);
    CHECK(module.log[0].params.decode.max_partials == 17);
  }
  SECTION("by a second kernel, forced") {
    auto launch = make_tile64_launch(shape_of(1024), plan, module, kH200,
                                     Tile64Schedule{Combine::kByKernel, 5});
    REQUIRE(launch);
    REQUIRE((*launch)->launch(args_of(2), nullptr));
    REQUIRE(module.log.size() == 2);
    CHECK(module.log[0].config.grid[0] == 4);
    CHECK(module.log[1].function == "combine");
    CHECK(module.log[1].config.grid[0] == 2);
    CHECK(module.log[1].config.grid[1] == 8);
    CHECK(module.log[1].config.grid[2] == 2);
  }
}

TEST_CASE("launches that share a workspace carry different numbers", "[runtime][tile64]") {
  RecordingModule module;
  auto launch = make_tile64_launch(shape_of(1024), plan_of(), module, kH200);
  REQUIRE(launch);
  for (int i = 0; i < 8; ++i) REQUIRE((*launch)->launch(args_of(1), nullptr));
  std::set<unsigned long long> numbers;
  for (const auto& each : module.log) {
    CHECK(each.params.launch >= 1);
    CHECK(each.params.launch < 1ULL << 48);
    numbers.insert(each.params.launch);
  }
  CHECK(numbers.size() == module.log.size());
}

TEST_CASE("a tile64 plan with other entries is a defect that is named", "[runtime][tile64]") {
  RecordingModule module;
  specializer::Plan plan;
  plan.entries = {{"decode", 128, 0}};
  const auto launch = make_tile64_launch(shape_of(1024), plan, module, kH200);
  REQUIRE_FALSE(launch);
  CHECK(launch.error().code == ErrorCode::kInternal);
}

}  // namespace broach::runtime
