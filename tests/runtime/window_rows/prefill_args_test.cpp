#include "runtime/window_rows/prefill_args.hpp"

#include <functional>
#include <string>
#include <vector>

#include "runtime/window_rows/prefill_launch.hpp"
#include "tests/support/catch.hpp"

namespace broach::runtime {
namespace {

struct alignas(16) Block {
  std::uint16_t values[8];
};

WindowRowsShape ring_shape() {
  WindowRowsShape shape;
  shape.head_dim = 64;
  shape.gqa_ratio = 2;
  shape.window = 100;
  shape.kv_layout = {KvLayoutKind::kRing, 163};
  shape.form = Form::kPrefill;
  shape.arith = Arith::kTile64;
  return shape;
}

}  // namespace

TEST_CASE("a prefill argument that cannot be served is named with its value and its bound",
          "[runtime][prefill_args]") {
  static Block memory;
  static std::int32_t indices[4] = {};
  WindowRowsPrefillArgs args;
  args.attention.q = args.cache.k = args.cache.v = &memory;
  args.attention.out = &memory;
  args.positions = args.slots = indices;
  args.attention.q_head_stride = args.attention.out_head_stride = 64;
  args.attention.q_row_stride = args.attention.out_row_stride = 128;
  args.cache.k_head_stride = args.cache.v_head_stride = 64;
  args.cache.k_position_stride = args.cache.v_position_stride = 64;
  args.cache.k_slot_stride = args.cache.v_slot_stride = 64 * 163;
  args.attention.rows = 64;
  args.cache.kv_heads = 1;
  args.cache.slots = 1;
  args.cache.length = 163;
  args.offsets = indices;
  args.sequences = 1;
  const WindowRowsShape shape = ring_shape();
  REQUIRE(check_prefill_args(shape, args));  // a ring of 163 holds a window of 100 and 63 more rows

  struct Row {
    std::string words;
    std::function<void(WindowRowsPrefillArgs&)> spoil;
  };
  const std::vector<Row> rows = {
      {"attention.rows is 65", [](WindowRowsPrefillArgs& a) { a.attention.rows = 65; }},
      {"attention.rows is -1", [](WindowRowsPrefillArgs& a) { a.attention.rows = -1; }},
      {"sequences is 0", [](WindowRowsPrefillArgs& a) { a.sequences = 0; }},
      {"sequences is 65", [](WindowRowsPrefillArgs& a) { a.sequences = 65; }},
      {"offsets is null", [](WindowRowsPrefillArgs& a) { a.offsets = nullptr; }},
      {"hi is at 0x",
       [](WindowRowsPrefillArgs& a) {
         a.hi =
             reinterpret_cast<const std::int32_t*>(reinterpret_cast<std::uintptr_t>(indices) + 1);
       }},
      {"cache.kv_heads is 40000", [](WindowRowsPrefillArgs& a) { a.cache.kv_heads = 40000; }},
      {"attention.q is null", [](WindowRowsPrefillArgs& a) { a.attention.q = nullptr; }},
  };
  for (const Row& row : rows) {
    WindowRowsPrefillArgs spoilt = args;
    row.spoil(spoilt);
    const auto checked = check_prefill_args(shape, spoilt);
    CAPTURE(row.words);
    REQUIRE_FALSE(checked);
    INFO(checked.error().message);
    CHECK(checked.error().code == ErrorCode::kInvalidArgument);
    CHECK(checked.error().message.starts_with("window_rows prefill: "));
    CHECK(checked.error().message.find(row.words) != std::string::npos);
  }
}

TEST_CASE("row blocks cover every split of the rows over sequences", "[runtime][prefill_args]") {
  CHECK(prefill_row_blocks(64, 1, 64) == 1);
  CHECK(prefill_row_blocks(65, 1, 64) == 2);
  CHECK(prefill_row_blocks(65, 1, 128) == 1);
  CHECK(prefill_row_blocks(1, 1, 192) == 1);
  CHECK(prefill_row_blocks(5, 5, 64) == 5);
  const std::int32_t block_rows = GENERATE(64, 128, 192);
  for (std::int32_t rows = 2; rows < 300; ++rows) {
    for (std::int32_t first = 1; first < rows; ++first) {
      const std::int32_t needed =
          (first + block_rows - 1) / block_rows + (rows - first + block_rows - 1) / block_rows;
      REQUIRE(prefill_row_blocks(rows, 2, static_cast<std::uint32_t>(block_rows)) >=
              static_cast<std::uint32_t>(needed));
    }
  }
}

}  // namespace broach::runtime
