#include "runtime/window_rows/chunk256_launch.hpp"

#include <algorithm>

#include "kernel_src/window_rows/params.h"
#include "tests/runtime/recording_module.hpp"
#include "tests/support/catch.hpp"

namespace broach::runtime {
namespace {

using RecordingModule = test::RecordingModule<BroachWindowRowsDecode>;

WindowRowsShape shape_of(std::uint32_t window) {
  WindowRowsShape shape;
  shape.head_dim = 256;
  shape.gqa_ratio = 2;
  shape.window = window;
  shape.arith = Arith::kChunk256;
  return shape;
}

}  // namespace

TEST_CASE("max_chunks is the most chunks that any window can touch", "[runtime][chunk256]") {
  for (const std::uint32_t window : {1U, 2U, 255U, 256U, 257U, 258U, 1023U, 1024U, 1025U}) {
    std::uint32_t most = 0;
    for (std::uint32_t first = 0; first < 512; ++first) {
      most = std::max(most, (first + window - 1) / 256 - first / 256 + 1);
    }
    CHECK(chunk256_max_chunks(window, 0) == most);
  }
}

TEST_CASE("without a window a row touches the chunks of its whole context", "[runtime][chunk256]") {
  CHECK(chunk256_max_chunks(0, 1) == 1);
  CHECK(chunk256_max_chunks(0, 256) == 1);
  CHECK(chunk256_max_chunks(0, 257) == 2);
  CHECK(chunk256_max_chunks(0, 40000) == 157);
}

TEST_CASE("the workspace holds a maximum, a sum and a row a partial", "[runtime][chunk256]") {
  // 3 rows x 16 heads x 5 chunks x 258 floats.
  CHECK(chunk256_workspace_bytes(shape_of(1024), 3, 8, 0) == 3U * 16 * 5 * 258 * 4);
  CHECK(chunk256_workspace_bytes(shape_of(1024), 0, 8, 0) == 0);
  // 65,535 rows of a long context: more than 32 bits count.
  CHECK(chunk256_workspace_bytes(shape_of(0), 65535, 8, 131072) ==
        std::size_t{65535} * 16 * 512 * 258 * 4);
}

TEST_CASE("a decode is a grid of partials and then a grid that combines them",
          "[runtime][chunk256]") {
  RecordingModule module;
  specializer::Plan plan;
  plan.entries = {{"partial", 256, 1000}, {"combine", 128, 0}};
  auto launch = make_chunk256_launch(shape_of(1024), plan, module);
  REQUIRE(launch);
  WindowRowsDecodeArgs args;
  args.attention.rows = 3;
  args.cache.kv_heads = 8;
  int stream = 0;
  REQUIRE((*launch)->launch(args, &stream));
  REQUIRE(module.log.size() == 2);
  const auto& partial = module.log[0];
  CHECK(partial.function == "partial");
  CHECK(partial.config.grid[0] == 5);
  CHECK(partial.config.grid[1] == 8);
  CHECK(partial.config.grid[2] == 3);
  CHECK(partial.config.block[0] == 256);
  CHECK(partial.config.dynamic_shared_bytes == 1000);
  CHECK(partial.config.stream == &stream);
  CHECK(partial.params.max_partials == 5);
  const auto& combine = module.log[1];
  CHECK(combine.function == "combine");
  CHECK(combine.config.grid[0] == 16);
  CHECK(combine.config.grid[1] == 3);
  CHECK(combine.config.grid[2] == 1);
  CHECK(combine.config.block[0] == 128);
}

TEST_CASE("a plan with other entries is a defect that is named", "[runtime][chunk256]") {
  RecordingModule module;
  specializer::Plan plan;
  plan.entries = {{"partial", 256, 0}};
  const auto launch = make_chunk256_launch(shape_of(1024), plan, module);
  REQUIRE_FALSE(launch);
  CHECK(launch.error().code == ErrorCode::kInternal);
}

}  // namespace broach::runtime
