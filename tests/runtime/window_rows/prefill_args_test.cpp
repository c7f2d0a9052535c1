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
  PrefillArgs args;
  args.common.q = args.common.k = args.common.v = &memory;
  args.common.out = &memory;
  args.common.positions = args.common.slots = indices;
  args.common.q_head_stride = args.common.out_head_stride = 64;
  args.common.q_row_stride = args.common.out_row_stride = 128;
  args.common.k_head_stride = args.common.v_head_stride = 64;
  args.common.k_position_stride = args.common.v_position_stride = 64;
  args.common.k_slot_stride = args.common.v_slot_stride = 64 * 163;
  args.common.rows = 64;
  args.common.kv_heads = 1;
  args.common.slot_count = 1;
  args.common.length = 163;
  args.offsets = indices;
  args.sequences = 1;
  const WindowRowsShape shape = ring_shape();
  REQUIRE(check_prefill_args(shape, args));  // a ring of 163 holds a window of 100 and 63 more rows

  struct Row {
    std::string words;
    std::function<void(PrefillArgs&)> spoil;
  };
  const std::vector<Row> rows = {
      {"rows is 65", [](PrefillArgs& a) { a.common.rows = 65; }},
      {"rows is -1", [](PrefillArgs& a) { a.common.rows = -1; }},
      {"sequences is 0", [](PrefillArgs& a) { a.sequences = 0; }},
      {"sequences is 65", [](PrefillArgs& a) { a.sequences = 65; }},
      {"offsets is null", [](PrefillArgs& a) { a.offsets = nullptr; }},
      {"hi is at 0x",
       [](PrefillArgs& a) {
         a.hi =
             reinterpret_cast<const std::int32_t*>(reinterpret_cast<std::uintptr_t>(indices) + 1);
       }},
      {"kv_heads is 40000", [](PrefillArgs& a) { a.common.kv_heads = 40000; }},
      {"q is null", [](PrefillArgs& a) { a.common.q = nullptr; }},
  };
  for (const Row& row : rows) {
    PrefillArgs spoilt = args;
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
