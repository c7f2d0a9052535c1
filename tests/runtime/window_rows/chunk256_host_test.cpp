#include <cstdint>
#include <string>
#include <vector>

#include "tests/runtime/window_rows/decode_case.hpp"
#include "tests/support/catch.hpp"

namespace broach::test {
namespace {

WindowRowsShape shape_of(std::uint32_t head_dim, std::uint32_t ratio, std::uint32_t window,
                         KvLayout layout) {
  WindowRowsShape shape;
  shape.head_dim = head_dim;
  shape.gqa_ratio = ratio;
  shape.window = window;
  shape.kv_layout = layout;
  shape.arith = Arith::kChunk256;
  return shape;
}

constexpr KvLayout kLinear{};
constexpr KvLayout kRing{KvLayoutKind::kRing, 700};

/// Rows of three streams: a first key, chunk edges, wrapped rings, windows over three chunks.
DecodeCase ragged(const WindowRowsShape& shape) {
  DecodeCase c;
  c.shape = shape;
  c.rows = {{0, 0}, {0, 31}, {1, 255}, {1, 256}, {2, 999}, {2, 1023}, {0, 40}};
  c.length = 1024;
  return c;
}

const WindowRowsShape kSmall = shape_of(64, 2, 600, kRing);

}  // namespace

TEST_CASE("every head dim agrees with float64 at the one rounding it has",
          "[runtime][chunk256_host]") {
  struct Shape {
    std::uint32_t head_dim, ratio;
    Dtype dtype;
  };
  const Shape row = GENERATE(values<Shape>({{64, 1, Dtype::kBf16},
                                            {80, 3, Dtype::kF16},
                                            {96, 5, Dtype::kBf16},
                                            {112, 2, Dtype::kF16},
                                            {128, 12, Dtype::kBf16},
                                            {192, 7, Dtype::kF16},
                                            {256, 2, Dtype::kBf16},
                                            {512, 6, Dtype::kF16}}));
  DecodeCase c = ragged(shape_of(row.head_dim, row.ratio, 600, kRing));
  c.shape.dtype = row.dtype;
  if (row.head_dim >= 192) c.rows = {{0, 300}, {1, 999}};
  INFO("head_dim " << row.head_dim << ", ratio " << row.ratio);
  CHECK(wrong_outputs(c, decode(c)) == 0);
}

TEST_CASE("every ratio agrees with float64", "[runtime][chunk256_host][slow]") {
  const std::uint32_t ratio = GENERATE(range(1u, 33u));
  DecodeCase c = ragged(shape_of(64, ratio, 600, kRing));
  c.rows = {{0, 300}, {1, 999}};
  INFO("ratio " << ratio);
  CHECK(wrong_outputs(c, decode(c)) == 0);
}

TEST_CASE("without a window a row sees every earlier key", "[runtime][chunk256_host]") {
  const DecodeCase c = ragged(shape_of(64, 2, 0, kLinear));
  CHECK(wrong_outputs(c, decode(c)) == 0);
}

TEST_CASE("soft caps and sinks enter where the definition says", "[runtime][chunk256_host]") {
  DecodeCase c = ragged(kSmall);
  c.shape.softcap = c.shape.sinks = Switch::kOn;
  c.scale = 4.0F;
  c.softcap = 3.0F;
  c.sinks = {0.5F, -2.0F, 3.0F, 1.0F};
  CHECK(wrong_outputs(c, decode(c)) == 0);
}

TEST_CASE("promise 1: a row has the same bits alone and at any index of a batch",
          "[runtime][chunk256_host]") {
  DecodeCase whole = ragged(kSmall);
  while (whole.rows.size() < 17) whole.rows.push_back(whole.rows[whole.rows.size() % 7]);
  const auto out = decode(whole);
  for (std::size_t i = 0; i < 7; ++i) {
    DecodeCase alone = whole;
    alone.rows = {whole.rows[i]};
    const auto bits = decode(alone);
    CHECK((bits == row_of(whole, out, i)));
    CHECK((bits == row_of(whole, out, i + 7)));
    DecodeCase three = whole;
    three.rows = {whole.rows[(i + 3) % 7], whole.rows[i], whole.rows[(i + 5) % 7]};
    CHECK((bits == row_of(three, decode(three), 1)));
  }
}

TEST_CASE("promise 2: neither slot nor cache length changes a bit", "[runtime][chunk256_host]") {
  const DecodeCase base = ragged(shape_of(64, 2, 600, kLinear));
  const auto bits = decode(base);
  DecodeCase other = base;
  other.slots = 5;
  other.slot_of_stream = {4, 0, 2};
  CHECK((decode(other) == bits));
  other = base;
  other.length = 16 * base.length;
  CHECK((decode(other) == bits));
  other = base;
  other.shape.kv_layout = {KvLayoutKind::kRing, 700};
  const auto ring = decode(other);
  other.shape.kv_layout = {KvLayoutKind::kRing, 1500};
  CHECK((decode(other) == ring));
}

TEST_CASE("promise 4: ring, linear and shuffled pages give the same bits",
          "[runtime][chunk256_host]") {
  DecodeCase c = ragged(shape_of(64, 2, 600, kLinear));
  const auto bits = decode(c);
  const KvLayout layout = GENERATE(values<KvLayout>(
      {{KvLayoutKind::kRing, 700}, {KvLayoutKind::kPaged, 64}, {KvLayoutKind::kPaged, 16}}));
  c.shape.kv_layout = layout;
  CHECK((decode(c) == bits));
}

TEST_CASE("promise 5: the generic kernel has the specialised one's bits",
          "[runtime][chunk256_host]") {
  const WindowRowsShape shape = GENERATE(values<WindowRowsShape>(
      {shape_of(64, 2, 600, kRing), shape_of(64, 12, 600, kRing), shape_of(64, 3, 0, kLinear),
       shape_of(64, 2, 600, {KvLayoutKind::kPaged, 64})}));
  DecodeCase c = ragged(shape);
  const auto bits = decode(c);
  c.variant.generic = Switch::kOn;
  CHECK((decode(c) == bits));
}

TEST_CASE("promise 6: five runs give the same bits", "[runtime][chunk256_host]") {
  const DecodeCase c = ragged(kSmall);
  const auto bits = decode(c);
  for (int run = 0; run < 4; ++run) CHECK((decode(c) == bits));
}

TEST_CASE("promise 7: a row keeps its bits beside rows of NaN and infinity",
          "[runtime][chunk256_host]") {
  const DecodeCase clean = ragged(kSmall);
  const auto bits = decode(clean);
  const std::uint16_t bad = GENERATE(as<std::uint16_t>{}, 0x7fc0, 0x7f80, 0xff80);
  DecodeCase c = clean;
  c.plants = {{'q', 3, 0, 1, 5, bad}, {'k', 2, 990, 0, 3, bad}, {'v', 0, 35, 1, 60, bad}};
  const auto out = decode(c);
  CHECK(wrong_outputs(c, out) == 0);
  // Row 3's head 1 has the query, rows 4 and 5 see the key at 990 and row 6 the value at 35.
  for (const std::size_t row : {0u, 1u, 2u}) CHECK((row_of(c, out, row) == row_of(c, bits, row)));
  const auto values = static_cast<std::size_t>(c.head_dim());
  for (std::size_t head = 0; head < 4; ++head) {
    const std::size_t at = (3 * 4 + head) * values;
    const bool same = std::equal(out.begin() + static_cast<std::ptrdiff_t>(at),
                                 out.begin() + static_cast<std::ptrdiff_t>(at + values),
                                 bits.begin() + static_cast<std::ptrdiff_t>(at));
    CHECK(same == (head != 1));
  }
}

TEST_CASE("a non-finite output has float64's class", "[runtime][chunk256_host]") {
  DecodeCase c = ragged(kSmall);
  c.rows = {{2, 999}, {2, 1023}};
  const std::uint16_t inf = 0x7f80;
  SECTION("an infinite value that is seen") { c.plants = {{'v', 2, 700, 0, 7, inf}}; }
  SECTION("infinities of both signs in one column") {
    c.plants = {{'v', 2, 700, 0, 7, inf}, {'v', 2, 705, 0, 7, 0xff80}};
  }
  SECTION("an infinite value at a weight that only float64 can hold") {
    // Head 0's key at 700 scores 200 below the best: exp(-200) is 0 in fp32.
    c.plants = {{'v', 2, 700, 0, 7, inf}};
    c.scale = 0.0F;
    c.shape.sinks = Switch::kOn;
    c.sinks = {200.0F, 200.0F, 200.0F, 200.0F};
  }
  SECTION("a score that overflows fp32 only") {
    c.plants = {{'q', 0, 0, 0, 0, 0x7f7f}, {'k', 2, 700, 0, 0, 0x7f7f}};
  }
  CHECK(wrong_outputs(c, decode(c)) == 0);
}

TEST_CASE("a checked kernel says which argument of which row is out of range",
          "[runtime][chunk256_host]") {
  DecodeCase c = ragged(shape_of(64, 2, 600, {KvLayoutKind::kPaged, 64}));
  c.shape.checked = Switch::kOn;
  DecodeTensors good = lay_out(c);
  REQUIRE(try_decode(c.shape, good.params, good.max_keys));
  CHECK(wrong_outputs(c, good.out) == 0);

  const auto message = [&](const auto& spoil) {
    DecodeTensors t = lay_out(c);
    spoil(t);
    const auto ran = try_decode(c.shape, t.params, t.max_keys);
    return ran ? std::string("ran") : ran.error().message;
  };
  const auto has = [](const std::string& text, const char* part) {
    INFO(text);
    CHECK(text.find(part) != std::string::npos);
  };
  has(message([](DecodeTensors& t) { t.slots[3] = 3; }), "slot is outside 0 to slots - 1: 3");
  has(message([](DecodeTensors& t) { t.slots[3] = -1; }), "slot is outside 0 to slots - 1: -1");
  has(message([](DecodeTensors& t) { t.positions[4] = -7; }), "position is negative: -7");
  has(message([](DecodeTensors& t) { t.positions[4] = 1024; }), "past its slot's length: 1024");
  has(message([](DecodeTensors& t) { t.page_table[20] = -2; }), "table entry is negative: -2");
}

TEST_CASE("a checked kernel refuses a position past the launch's max_keys",
          "[runtime][chunk256_host]") {
  DecodeCase c = ragged(shape_of(64, 2, 0, kLinear));
  c.shape.checked = Switch::kOn;
  DecodeTensors t = lay_out(c);
  const auto ran = try_decode(c.shape, t.params, 512);
  REQUIRE_FALSE(ran);
  INFO(ran.error().message);
  CHECK(ran.error().code == ErrorCode::kInvalidArgument);
  CHECK(ran.error().message.find("past the launch's max_keys: 999") != std::string::npos);
}

TEST_CASE("every planted fault changes outputs", "[runtime][chunk256_host]") {
  const std::string control =
      GENERATE(as<std::string>{}, "window_early", "unmasked_block", "ratio_off_by_one",
               "page_off_by_one", "rescale_dropped", "sink_left_out", "rerun_dropped");
  DecodeCase c = ragged(shape_of(64, 2, 600, {KvLayoutKind::kPaged, 64}));
  c.shape.sinks = Switch::kOn;
  c.scale = 2.0F;
  c.sinks = {0.5F, -2.0F, 3.0F, 1.0F};
  if (control == "rerun_dropped") {  // A score that overflows fp32 only.
    c.plants = {{'q', 4, 0, 0, 0, 0x7f7f}, {'k', 2, 995, 0, 0, 0x7f7f}};
  }
  CHECK(wrong_outputs(c, decode(c)) == 0);
  c.variant.control = control;
  INFO(control);
  CHECK(wrong_outputs(c, decode(c)) > 0);
}

TEST_CASE("planted faults of rounding change bits within float64's reach",
          "[runtime][chunk256_host]") {
  const std::string control =
      GENERATE(as<std::string>{}, "output_toward_zero", "rounding_dropped", "whole_block_rerun");
  DecodeCase c = ragged(kSmall);
  c.shape.dtype = Dtype::kF16;
  c.scale = 4.0F;
  for (int i = 0; i < 40; ++i) c.rows.push_back({2, 1000 + i});
  if (control == "whole_block_rerun") {
    for (int row = 1; row < 47; row += 3) c.plants.push_back({'q', row, 0, 1, 5, 0x7e00});
  }
  const auto bits = decode(c);
  c.variant.control = control;
  INFO(control);
  CHECK((decode(c) != bits));
}

}  // namespace broach::test
