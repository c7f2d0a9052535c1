#include "runtime/window_rows/decode_args.hpp"

#include <cmath>
#include <functional>
#include <limits>

#include "runtime/attention/check_args.hpp"
#include "runtime/saturate.hpp"
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
WindowRowsDecodeArgs good_args() {
  const auto at = [](std::uintptr_t address) { return reinterpret_cast<void*>(address); };
  WindowRowsDecodeArgs args;
  args.attention.q = at(0x10000);
  args.cache.k = at(0x20000);
  args.cache.v = at(0x30000);
  args.attention.out = at(0x40000);
  args.positions = static_cast<const std::int32_t*>(at(0x50000));
  args.slots = static_cast<const std::int32_t*>(at(0x60000));
  args.workspace = at(0x70000);
  args.workspace_bytes = 1 << 20;
  args.attention.rows = 3;
  args.cache.kv_heads = 8;
  args.cache.slots = 4;
  args.cache.length = 1536;
  args.attention.q_head_stride = args.attention.out_head_stride = 256;
  args.attention.q_row_stride = args.attention.out_row_stride = 16 * 256;
  args.cache.k_head_stride = args.cache.v_head_stride = 256;
  args.cache.k_position_stride = args.cache.v_position_stride = 8 * 256;
  args.cache.k_slot_stride = args.cache.v_slot_stride = 1536 * 8 * 256;
  return args;
}

std::string refusal(const WindowRowsShape& shape, const WindowRowsDecodeArgs& args) {
  const auto checked = check_decode_args(shape, args);
  if (checked) return {};
  CHECK(checked.error().code == ErrorCode::kInvalidArgument);
  return checked.error().message;
}

struct Fault {
  std::function<void(WindowRowsDecodeArgs&)> plant;
  std::string words;
};

template <class Pointer>
Pointer moved(Pointer pointer, std::uintptr_t bytes) {
  return reinterpret_cast<Pointer>(reinterpret_cast<std::uintptr_t>(pointer) + bytes);
}

const std::vector<Fault> kFaults{
    {[](WindowRowsDecodeArgs& a) { a.attention.rows = -1; },
     "attention.rows is -1; it must be 0 to 65535"},
    {[](WindowRowsDecodeArgs& a) { a.attention.rows = 65536; },
     "attention.rows is 65536; it must be 0 to 65535"},
    {[](WindowRowsDecodeArgs& a) { a.cache.kv_heads = 0; },
     "cache.kv_heads is 0; it must be 1 to 65535"},
    {[](WindowRowsDecodeArgs& a) { a.cache.slots = 0; },
     "cache.slots is 0; it must be 1 to 2147483647"},
    {[](WindowRowsDecodeArgs& a) { a.cache.length = 1024; },
     "cache.length is 1024; it must be the shape's ring, 1536"},
    {[](WindowRowsDecodeArgs& a) { a.max_keys = -5; },
     "max_keys is -5; it must be 0 to 2147483647"},
    {[](WindowRowsDecodeArgs& a) { a.attention.q = nullptr; }, "attention.q is null"},
    {[](WindowRowsDecodeArgs& a) { a.attention.out = nullptr; }, "attention.out is null"},
    {[](WindowRowsDecodeArgs& a) { a.positions = nullptr; }, "positions is null"},
    {[](WindowRowsDecodeArgs& a) { a.slots = nullptr; }, "slots is null"},
    {[](WindowRowsDecodeArgs& a) { a.cache.k = moved(a.cache.k, 8); },
     "cache.k is at 0x20008; it must be aligned to 16 bytes"},
    {[](WindowRowsDecodeArgs& a) { a.cache.v = moved(a.cache.v, 2); },
     "cache.v is at 0x30002; it must be aligned to 16 bytes"},
    {[](WindowRowsDecodeArgs& a) { a.positions = moved(a.positions, 2); },
     "positions is at 0x50002; it must be aligned to 4 bytes"},
    {[](WindowRowsDecodeArgs& a) { a.cache.k_head_stride = 255; },
     "cache.k_head_stride is 255; it must be at least 256, the elements inside one step of it"},
    {[](WindowRowsDecodeArgs& a) { a.cache.v_position_stride = 2047; },
     "cache.v_position_stride is 2047; it must be at least 2048, the elements inside one step of "
     "it"},
    {[](WindowRowsDecodeArgs& a) { a.cache.k_slot_stride -= 8; },
     "cache.k_slot_stride is 3145720; it must be at least 3145728, the elements inside one step of "
     "it"},
    {[](WindowRowsDecodeArgs& a) { a.attention.q_row_stride += 4; },
     "attention.q_row_stride is 4100; it must be a multiple of 8 elements (16 bytes)"},
    {[](WindowRowsDecodeArgs& a) { a.attention.out_row_stride = -4096; },
     "attention.out_row_stride is -4096; it must be at least 256, the elements inside one step of "
     "it"},
    {[](WindowRowsDecodeArgs& a) { a.cache.k_slot_stride = std::int64_t{1} << 62; },
     "cache.k_slot_stride is 4611686018427387904; it must be small enough that 4 steps of it fit "
     "in 2^63 "
     "bytes"},
    {[](WindowRowsDecodeArgs& a) { a.attention.scale = std::nanf(""); },
     "attention.scale is nan; it must be finite"},
    {[](WindowRowsDecodeArgs& a) { a.attention.softcap = 30; },
     "attention.softcap is 30, but the shape has softcap=off"},
    {[](WindowRowsDecodeArgs& a) {
       a.attention.sinks = reinterpret_cast<const float*>(a.attention.q);
     },
     "attention.sinks is given, but the shape has sinks=off"},
    {[](WindowRowsDecodeArgs& a) { a.cache.page_table = a.slots; },
     "cache.page_table is given, but the shape's kv_layout is not paged"},
};

}  // namespace

TEST_CASE("arguments that fit are accepted", "[runtime][decode_args]") {
  CHECK(refusal(gemma_shape(), good_args()).empty());
}

TEST_CASE("each argument that cannot be served is named with its value and bound",
          "[runtime][decode_args]") {
  for (const Fault& fault : kFaults) {
    WindowRowsDecodeArgs args = good_args();
    fault.plant(args);
    CHECK(refusal(gemma_shape(), args) == "window_rows decode: " + fault.words);
  }
}

TEST_CASE("no row at all is fine", "[runtime][decode_args]") {
  WindowRowsDecodeArgs args = good_args();
  args.attention.rows = 0;
  CHECK(refusal(gemma_shape(), args).empty());
}

TEST_CASE("a cache with heads outside positions is accepted", "[runtime][decode_args]") {
  WindowRowsDecodeArgs args = good_args();
  args.cache.k_position_stride = args.cache.v_position_stride = 256;
  args.cache.k_head_stride = args.cache.v_head_stride = 1536 * 256;
  CHECK(refusal(gemma_shape(), args).empty());
  args.cache.k_head_stride -= 256;
  CHECK(refusal(gemma_shape(), args).find("cache.k_head_stride") != std::string::npos);
}

TEST_CASE("the stride of an axis with one step is not looked at", "[runtime][decode_args]") {
  WindowRowsDecodeArgs args = good_args();
  args.attention.rows = args.cache.slots = 1;
  args.attention.q_row_stride = args.attention.out_row_stride = args.cache.k_slot_stride =
      args.cache.v_slot_stride = 0;
  CHECK(refusal(gemma_shape(), args).empty());
}

TEST_CASE("a linear cache bounds max_keys by its length", "[runtime][decode_args]") {
  WindowRowsShape shape = gemma_shape();
  shape.kv_layout = {};
  shape.window = 0;
  WindowRowsDecodeArgs args = good_args();
  args.max_keys = 1536;
  CHECK(refusal(shape, args).empty());
  CHECK(key_bound(args.cache, args.max_keys) == 1536);
  args.max_keys = 1537;
  CHECK(refusal(shape, args) == "window_rows decode: max_keys is 1537; it must be 0 to 1536");
  args.max_keys = 0;
  CHECK(key_bound(args.cache, args.max_keys) == args.cache.length);
}

TEST_CASE("softcap and sinks must come with a shape that has them", "[runtime][decode_args]") {
  WindowRowsShape shape = gemma_shape();
  shape.softcap = shape.sinks = Switch::kOn;
  WindowRowsDecodeArgs args = good_args();
  args.attention.sinks = reinterpret_cast<const float*>(0x80000);
  args.attention.softcap = 30;
  CHECK(refusal(shape, args).empty());
  for (const float bad : {0.0F, -1.0F, std::numeric_limits<float>::infinity()}) {
    args.attention.softcap = bad;
    CHECK(refusal(shape, args).find("attention.softcap is ") != std::string::npos);
  }
  args.attention.softcap = 30;
  args.attention.sinks = nullptr;
  CHECK(refusal(shape, args) == "window_rows decode: attention.sinks is null");
}

TEST_CASE("a paged cache needs whole pages and a page table", "[runtime][decode_args]") {
  WindowRowsShape shape = gemma_shape();
  shape.kv_layout = {KvLayoutKind::kPaged, 64};
  WindowRowsDecodeArgs args = good_args();
  args.cache.k_slot_stride = args.cache.v_slot_stride = 64 * 8 * 256;
  CHECK(refusal(shape, args) == "window_rows decode: cache.pages is 0; it must be 1 to 2147483647");
  args.cache.pages = 96;
  CHECK(refusal(shape, args) == "window_rows decode: cache.page_table is null");
  args.cache.page_table = reinterpret_cast<const std::int32_t*>(0x90000);
  args.cache.page_table_stride = 24;
  CHECK(refusal(shape, args).empty());
  args.cache.page_table_stride = 23;
  CHECK(refusal(shape, args) ==
        "window_rows decode: cache.page_table_stride is 23; it must be at least 24, the pages a "
        "slot");
  args.cache.page_table_stride = 24;
  args.cache.length = 1500;
  CHECK(refusal(shape, args) ==
        "window_rows decode: cache.length is 1500; it must be whole pages of 64");
}

TEST_CASE("a workspace that is small, missing or crooked is refused", "[runtime][decode_args]") {
  constexpr std::string_view kName = "window_rows decode";
  auto* const at = reinterpret_cast<std::byte*>(0x70000);
  CHECK(check_workspace(kName, at, 1 << 20, 1 << 20));
  const auto small = check_workspace(kName, at, 1 << 20, (1 << 20) + 1);
  REQUIRE_FALSE(small);
  CHECK(small.error().message ==
        "window_rows decode: workspace_bytes is 1048576; this launch needs 1048577");
  CHECK_FALSE(check_workspace(kName, at + 4, 1, 1));
  CHECK_FALSE(check_workspace(kName, nullptr, 1, 1));
  CHECK(check_workspace(kName, nullptr, 0, 0));
  constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
  CHECK_FALSE(check_workspace(kName, at, kMost, kMost));
}

TEST_CASE("sizes whose product does not fit are all the bytes there are, and no fewer",
          "[runtime][decode_args]") {
  constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
  CHECK(saturated_product({}) == 1);
  CHECK(saturated_product({3, 5, 7}) == 105);
  CHECK(saturated_product({kMost, 2}) == kMost);
  CHECK(saturated_product({std::size_t{1} << 32, std::size_t{1} << 32, 1}) == kMost);
  CHECK(saturated_product({kMost, 2, 0}) == 0);
}

TEST_CASE("reserved fields must be zero", "[runtime][decode_args]") {
  WindowRowsDecodeArgs args = good_args();
  args.reserved = 1;
  CHECK(refusal(gemma_shape(), args) == "window_rows decode: reserved must be 0");
  args = good_args();
  args.attention.reserved = 7;
  CHECK(refusal(gemma_shape(), args).find("attention.reserved is 7") != std::string::npos);
  args = good_args();
  args.cache.pages = 4;
  CHECK(refusal(gemma_shape(), args).find("cache.pages is 4") != std::string::npos);
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
