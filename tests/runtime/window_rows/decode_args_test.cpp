#include "runtime/window_rows/decode_args.hpp"

#include <cmath>
#include <functional>
#include <limits>

#include "tests/support/catch.hpp"

namespace broach::runtime {
namespace {

WindowRowsShape gemma_shape() {
  WindowRowsShape shape;
  shape.head_dim = 256;
  shape.gqa_ratio = 2;
  shape.window = 1024;
  shape.kv_layout = {KvLayoutKind::kRing, 1536};
  shape.arith = Arith::kChunk256;
  return shape;
}

/// Arguments that pass; the addresses are looked at, never read.
DecodeArgs good_args() {
  const auto at = [](std::uintptr_t address) { return reinterpret_cast<void*>(address); };
  DecodeArgs args;
  args.q = at(0x10000);
  args.k = at(0x20000);
  args.v = at(0x30000);
  args.out = at(0x40000);
  args.positions = static_cast<const std::int32_t*>(at(0x50000));
  args.slots = static_cast<const std::int32_t*>(at(0x60000));
  args.workspace = at(0x70000);
  args.workspace_bytes = 1 << 20;
  args.rows = 3;
  args.kv_heads = 8;
  args.slot_count = 4;
  args.length = 1536;
  args.q_head_stride = args.out_head_stride = 256;
  args.q_row_stride = args.out_row_stride = 16 * 256;
  args.k_head_stride = args.v_head_stride = 256;
  args.k_position_stride = args.v_position_stride = 8 * 256;
  args.k_slot_stride = args.v_slot_stride = 1536 * 8 * 256;
  return args;
}

std::string refusal(const WindowRowsShape& shape, const DecodeArgs& args) {
  const auto checked = check_decode_args(shape, args);
  if (checked) return {};
  CHECK(checked.error().code == ErrorCode::kInvalidArgument);
  return checked.error().message;
}

struct Fault {
  std::function<void(DecodeArgs&)> plant;
  std::string words;
};

template <class Pointer>
Pointer moved(Pointer pointer, std::uintptr_t bytes) {
  return reinterpret_cast<Pointer>(reinterpret_cast<std::uintptr_t>(pointer) + bytes);
}

const std::vector<Fault> kFaults{
    {[](DecodeArgs& a) { a.rows = -1; }, "rows is -1; it must be 0 to 65535"},
    {[](DecodeArgs& a) { a.rows = 65536; }, "rows is 65536; it must be 0 to 65535"},
    {[](DecodeArgs& a) { a.kv_heads = 0; }, "kv_heads is 0; it must be 1 to 65535"},
    {[](DecodeArgs& a) { a.slot_count = 0; }, "slot_count is 0; it must be 1 to 2147483647"},
    {[](DecodeArgs& a) { a.length = 1024; }, "length is 1024; it must be the shape's ring, 1536"},
    {[](DecodeArgs& a) { a.max_keys = -5; }, "max_keys is -5; it must be 0 to 2147483647"},
    {[](DecodeArgs& a) { a.q = nullptr; }, "q is null"},
    {[](DecodeArgs& a) { a.out = nullptr; }, "out is null"},
    {[](DecodeArgs& a) { a.positions = nullptr; }, "positions is null"},
    {[](DecodeArgs& a) { a.slots = nullptr; }, "slots is null"},
    {[](DecodeArgs& a) { a.k = moved(a.k, 8); }, "k is at 0x20008; it must be aligned to 16 bytes"},
    {[](DecodeArgs& a) { a.v = moved(a.v, 2); }, "v is at 0x30002; it must be aligned to 16 bytes"},
    {[](DecodeArgs& a) { a.positions = moved(a.positions, 2); },
     "positions is at 0x50002; it must be aligned to 4 bytes"},
    {[](DecodeArgs& a) { a.k_head_stride = 255; },
     "k_head_stride is 255; it must be at least 256, the elements inside one step of it"},
    {[](DecodeArgs& a) { a.v_position_stride = 2047; },
     "v_position_stride is 2047; it must be at least 2048, the elements inside one step of it"},
    {[](DecodeArgs& a) { a.k_slot_stride -= 8; },
     "k_slot_stride is 3145720; it must be at least 3145728, the elements inside one step of it"},
    {[](DecodeArgs& a) { a.q_row_stride += 4; },
     "q_row_stride is 4100; it must be a multiple of 8 elements (16 bytes)"},
    {[](DecodeArgs& a) { a.out_row_stride = -4096; },
     "out_row_stride is -4096; it must be at least 256, the elements inside one step of it"},
    {[](DecodeArgs& a) { a.k_slot_stride = std::int64_t{1} << 62; },
     "k_slot_stride is 4611686018427387904; it must be small enough that 4 steps of it fit in 2^63 "
     "bytes"},
    {[](DecodeArgs& a) { a.scale = std::nanf(""); }, "scale is nan; it must be finite"},
    {[](DecodeArgs& a) { a.softcap = 30; }, "softcap is 30, but the shape has softcap=off"},
    {[](DecodeArgs& a) { a.sinks = reinterpret_cast<const float*>(a.q); },
     "sinks is given, but the shape has sinks=off"},
    {[](DecodeArgs& a) { a.page_table = a.slots; },
     "page_table is given, but the shape's kv_layout is not paged"},
};

}  // namespace

TEST_CASE("arguments that fit are accepted", "[runtime][decode_args]") {
  CHECK(refusal(gemma_shape(), good_args()).empty());
}

TEST_CASE("each argument that cannot be served is named with its value and bound",
          "[runtime][decode_args]") {
  for (const Fault& fault : kFaults) {
    DecodeArgs args = good_args();
    fault.plant(args);
    CHECK(refusal(gemma_shape(), args) == "window_rows decode: " + fault.words);
  }
}

TEST_CASE("no row at all is fine", "[runtime][decode_args]") {
  DecodeArgs args = good_args();
  args.rows = 0;
  CHECK(refusal(gemma_shape(), args).empty());
}

TEST_CASE("a cache with heads outside positions is accepted", "[runtime][decode_args]") {
  DecodeArgs args = good_args();
  args.k_position_stride = args.v_position_stride = 256;
  args.k_head_stride = args.v_head_stride = 1536 * 256;
  CHECK(refusal(gemma_shape(), args).empty());
  args.k_head_stride -= 256;
  CHECK(refusal(gemma_shape(), args).find("k_head_stride") != std::string::npos);
}

TEST_CASE("the stride of an axis with one step is not looked at", "[runtime][decode_args]") {
  DecodeArgs args = good_args();
  args.rows = args.slot_count = 1;
  args.q_row_stride = args.out_row_stride = args.k_slot_stride = args.v_slot_stride = 0;
  CHECK(refusal(gemma_shape(), args).empty());
}

TEST_CASE("a linear cache bounds max_keys by its length", "[runtime][decode_args]") {
  WindowRowsShape shape = gemma_shape();
  shape.kv_layout = {};
  shape.window = 0;
  DecodeArgs args = good_args();
  args.max_keys = 1536;
  CHECK(refusal(shape, args).empty());
  CHECK(key_bound(args) == 1536);
  args.max_keys = 1537;
  CHECK(refusal(shape, args) == "window_rows decode: max_keys is 1537; it must be 0 to 1536");
  args.max_keys = 0;
  CHECK(key_bound(args) == args.length);
}

TEST_CASE("softcap and sinks must come with a shape that has them", "[runtime][decode_args]") {
  WindowRowsShape shape = gemma_shape();
  shape.softcap = shape.sinks = Switch::kOn;
  DecodeArgs args = good_args();
  args.sinks = reinterpret_cast<const float*>(0x80000);
  args.softcap = 30;
  CHECK(refusal(shape, args).empty());
  for (const float bad : {0.0F, -1.0F, std::numeric_limits<float>::infinity()}) {
    args.softcap = bad;
    CHECK(refusal(shape, args).find("softcap is ") != std::string::npos);
  }
  args.softcap = 30;
  args.sinks = nullptr;
  CHECK(refusal(shape, args) == "window_rows decode: sinks is null");
}

TEST_CASE("a paged cache needs whole pages and a page table", "[runtime][decode_args]") {
  WindowRowsShape shape = gemma_shape();
  shape.kv_layout = {KvLayoutKind::kPaged, 64};
  DecodeArgs args = good_args();
  args.k_slot_stride = args.v_slot_stride = 64 * 8 * 256;
  CHECK(refusal(shape, args) == "window_rows decode: page_table is null");
  args.page_table = reinterpret_cast<const std::int32_t*>(0x90000);
  args.page_table_stride = 24;
  CHECK(refusal(shape, args).empty());
  args.page_table_stride = 23;
  CHECK(refusal(shape, args) ==
        "window_rows decode: page_table_stride is 23; it must be at least 24, the pages a slot");
  args.page_table_stride = 24;
  args.length = 1500;
  CHECK(refusal(shape, args) == "window_rows decode: length is 1500; it must be whole pages of 64");
}

TEST_CASE("a workspace that is small, missing or crooked is refused", "[runtime][decode_args]") {
  DecodeArgs args = good_args();
  CHECK(check_workspace(args, 1 << 20));
  const auto small = check_workspace(args, (1 << 20) + 1);
  REQUIRE_FALSE(small);
  CHECK(small.error().message ==
        "window_rows decode: workspace_bytes is 1048576; 3 rows and 8 KV heads need 1048577");
  args.workspace = moved(args.workspace, 4);
  CHECK_FALSE(check_workspace(args, 1));
  args.workspace = nullptr;
  CHECK_FALSE(check_workspace(args, 1));
  args.workspace_bytes = 0;
  CHECK(check_workspace(args, 0));
}

TEST_CASE("the kernels are told every argument", "[runtime][decode_args]") {
  const BroachWindowRowsDecode params = decode_params(gemma_shape(), good_args());
  CHECK(reinterpret_cast<std::uintptr_t>(params.cache.v) == 0x30000);
  CHECK(params.cache.v_slot_stride == 1536 * 8 * 256);
  CHECK(params.attention.rows == 3);
  CHECK(params.window == 1024);
  CHECK(params.gqa_ratio == 2);
  CHECK(params.layout == 1);
  CHECK(params.layout_length == 1536);
  CHECK(params.attention.scale == 1.0F);
}

}  // namespace broach::runtime
