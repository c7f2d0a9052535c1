#include <cstdint>
#include <string>
#include <vector>

#include "tests/runtime/window_rows/float64_reference.hpp"
#include "tools/contract/window_rows/unit_weights.hpp"

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
const std::vector<RowAt> kRows = {{0, 0},   {0, 31},   {1, 255}, {1, 256},
                                  {2, 999}, {2, 1023}, {0, 40}};
Recipe ragged(const WindowRowsShape& shape) { return decode_of(shape, kRows); }

/// A case's outputs by its own kernel, or by a variant of it.
Outputs decode(const Problem& p, const specializer::Variant& variant = {}) {
  return run(kernel_of(p.shape, variant), p);
}

std::size_t wrong(const Recipe& recipe) {
  const Problem p = made(recipe);
  return wrong_outputs(p, decode(p));
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
  Recipe recipe = ragged(shape_of(row.head_dim, row.ratio, 600, kRing));
  recipe.shape.dtype = row.dtype;
  if (row.head_dim >= 192) recipe.rows = {{0, 300}, {1, 999}};
  INFO("head_dim " << row.head_dim << ", ratio " << row.ratio);
  CHECK(wrong(recipe) == 0);
}

TEST_CASE("every ratio agrees with float64", "[runtime][chunk256_host][slow]") {
  const std::uint32_t ratio = GENERATE(range(1u, 33u));
  Recipe recipe = ragged(shape_of(64, ratio, 600, kRing));
  recipe.rows = {{0, 300}, {1, 999}};
  INFO("ratio " << ratio);
  CHECK(wrong(recipe) == 0);
}

TEST_CASE("without a window a row sees every earlier key", "[runtime][chunk256_host]") {
  CHECK(wrong(ragged(shape_of(64, 2, 0, kLinear))) == 0);
}

TEST_CASE("soft caps and sinks enter where the definition says", "[runtime][chunk256_host]") {
  Recipe recipe = ragged(kSmall);
  recipe.shape.softcap = recipe.shape.sinks = Switch::kOn;
  recipe.scale = 4.0F;
  recipe.softcap = 3.0F;
  Problem p = made(recipe);
  p.sinks = {0.5F, -2.0F, 3.0F, 1.0F};
  CHECK(wrong_outputs(p, decode(p)) == 0);
}

TEST_CASE("promise 1: a row has the same bits alone and at any index of a batch",
          "[runtime][chunk256_host]") {
  Recipe recipe = ragged(kSmall);
  while (recipe.rows.size() < 17) recipe.rows.push_back(recipe.rows[recipe.rows.size() % 7]);
  const Problem whole = made(recipe);
  const Outputs out = decode(whole);
  for (std::int32_t i = 0; i < 7; ++i) {
    const Outputs bits = decode(whole.take({i}));
    CHECK((bits == row_of(whole, out, i)));
    CHECK((bits == row_of(whole, out, i + 7)));
    const Problem three = whole.take({(i + 3) % 7, i, (i + 5) % 7});
    CHECK((bits == row_of(three, decode(three), 1)));
  }
}

TEST_CASE("promise 2: neither slot nor cache length changes a bit", "[runtime][chunk256_host]") {
  const Recipe base = ragged(shape_of(64, 2, 600, kLinear));
  const Outputs bits = decode(made(base));
  CHECK((decode(in_slots(base, {4, 0, 2})) == bits));
  CHECK((decode(in_slots(base, {}, 16 * 1024)) == bits));
  const Outputs ring = decode(laid_out(base, {KvLayoutKind::kRing, 700}));
  CHECK((decode(laid_out(base, {KvLayoutKind::kRing, 1500})) == ring));
}

TEST_CASE("promise 4: ring, linear and shuffled pages give the same bits",
          "[runtime][chunk256_host]") {
  const Recipe base = ragged(shape_of(64, 2, 600, kLinear));
  const Outputs bits = decode(made(base));
  const KvLayout layout = GENERATE(values<KvLayout>(
      {{KvLayoutKind::kRing, 700}, {KvLayoutKind::kPaged, 64}, {KvLayoutKind::kPaged, 16}}));
  CHECK((decode(laid_out(base, layout)) == bits));
}

TEST_CASE("promise 5: the generic kernel has the specialised one's bits",
          "[runtime][chunk256_host]") {
  const WindowRowsShape shape = GENERATE(values<WindowRowsShape>(
      {shape_of(64, 2, 600, kRing), shape_of(64, 12, 600, kRing), shape_of(64, 3, 0, kLinear),
       shape_of(64, 2, 600, {KvLayoutKind::kPaged, 64})}));
  const Problem p = made(ragged(shape));
  CHECK((decode(p, {"", Switch::kOn}) == decode(p)));
}

TEST_CASE("promise 6: five runs give the same bits", "[runtime][chunk256_host]") {
  const Problem p = made(ragged(kSmall));
  const Outputs bits = decode(p);
  for (int run = 0; run < 4; ++run) CHECK((decode(p) == bits));
}

TEST_CASE("promise 7: a row keeps its bits beside rows of NaN and infinity",
          "[runtime][chunk256_host]") {
  const Problem clean = made(ragged(kSmall));
  const Outputs bits = decode(clean);
  const std::uint16_t bad = GENERATE(as<std::uint16_t>{}, 0x7fc0, 0x7f80, 0xff80);
  Problem p = clean;
  query_at(p, 3, 1)[5] = bad;
  key_at(p, 4, 990)[3] = bad;
  value_at(p, 6, 35, 1)[60] = bad;
  const Outputs out = decode(p);
  CHECK(wrong_outputs(p, out) == 0);
  // Row 3's head 1 has the query, rows 4 and 5 see the key at 990 and row 6 the value at 35.
  for (const std::int32_t row : {0, 1, 2}) CHECK((row_of(p, out, row) == row_of(p, bits, row)));
  for (std::int32_t head = 0; head < 4; ++head) {
    const auto from = p.out_at(3, head);
    const bool same =
        std::equal(out.begin() + from, out.begin() + from + p.head_dim(), bits.begin() + from);
    CHECK(same == (head != 1));
  }
}

TEST_CASE("a non-finite output has float64's class", "[runtime][chunk256_host]") {
  Recipe recipe = ragged(kSmall);
  recipe.rows = {{2, 999}, {2, 1023}};
  constexpr std::uint16_t kInf = 0x7f80;
  Problem p = made(recipe);
  SECTION("an infinite value that is seen") { value_at(p, 0, 700)[7] = kInf; }
  SECTION("infinities of both signs in one column") {
    value_at(p, 0, 700)[7] = kInf;
    value_at(p, 0, 705)[7] = 0xff80;
  }
  SECTION("an infinite value at a weight that only float64 can hold") {
    // Every key scores 200 below the sink: exp(-200) is 0 in fp32.
    recipe.shape.sinks = Switch::kOn;
    p = made(recipe);
    value_at(p, 0, 700)[7] = kInf;
    p.scale = 0.0F;
    p.sinks = {200.0F, 200.0F, 200.0F, 200.0F};
  }
  SECTION("a score that overflows fp32 only") {
    query_at(p, 0, 0)[0] = 0x7f7f;
    key_at(p, 0, 700)[0] = 0x7f7f;
  }
  CHECK(wrong_outputs(p, decode(p)) == 0);
}

TEST_CASE("a checked kernel says which argument of which row is out of range",
          "[runtime][chunk256_host]") {
  Recipe recipe = ragged(shape_of(64, 2, 600, {KvLayoutKind::kPaged, 64}));
  recipe.shape.checked = Switch::kOn;
  const Problem good = made(recipe);
  const Kernel kernel = kernel_of(recipe.shape);
  CHECK(wrong_outputs(good, run(kernel, good)) == 0);

  const auto message = [&](const auto& spoil) {
    Problem p = good;
    spoil(p);
    const auto ran = kernel.run(p);
    return ran ? std::string("ran") : ran.error().message;
  };
  const auto has = [](const std::string& text, const char* part) {
    INFO(text);
    CHECK(text.find(part) != std::string::npos);
  };
  has(message([](Problem& p) { p.slots[3] = 3; }), "slot is outside 0 to slots - 1: 3");
  has(message([](Problem& p) { p.slots[3] = -1; }), "slot is outside 0 to slots - 1: -1");
  has(message([](Problem& p) { p.positions[4] = -7; }), "position is negative: -7");
  has(message([](Problem& p) { p.positions[4] = 1024; }), "past its slot's length: 1024");
  has(message([](Problem& p) { p.page_table[20] = -2; }), "table entry is negative: -2");
}

TEST_CASE("a checked kernel refuses a position past the launch's max_keys",
          "[runtime][chunk256_host]") {
  Recipe recipe = ragged(shape_of(64, 2, 0, kLinear));
  recipe.shape.checked = Switch::kOn;
  Problem p = made(recipe);
  p.max_keys = 512;
  const auto ran = kernel_of(p.shape).run(p);
  REQUIRE_FALSE(ran);
  INFO(ran.error().message);
  CHECK(ran.error().code == ErrorCode::kInvalidArgument);
  CHECK(ran.error().message.find("past the launch's max_keys: 999") != std::string::npos);
}

TEST_CASE("every planted fault changes outputs", "[runtime][chunk256_host]") {
  const std::string control =
      GENERATE(as<std::string>{}, "window_early", "unmasked_block", "ratio_off_by_one",
               "page_off_by_one", "rescale_dropped", "sink_left_out", "rerun_dropped");
  Recipe recipe = ragged(shape_of(64, 2, 600, {KvLayoutKind::kPaged, 64}));
  recipe.shape.sinks = Switch::kOn;
  recipe.scale = 2.0F;
  Problem p = made(recipe);
  p.sinks = {0.5F, -2.0F, 3.0F, 1.0F};
  if (control == "rerun_dropped") {  // A score that overflows fp32 only.
    query_at(p, 4, 0)[0] = 0x7f7f;
    key_at(p, 4, 995)[0] = 0x7f7f;
  }
  CHECK(wrong_outputs(p, decode(p)) == 0);
  INFO(control);
  CHECK(wrong_outputs(p, decode(p, {control, Switch::kOff})) > 0);
}

TEST_CASE("planted faults of rounding change bits within float64's reach",
          "[runtime][chunk256_host]") {
  const std::string control =
      GENERATE(as<std::string>{}, "output_toward_zero", "rounding_dropped", "whole_block_rerun");
  Recipe recipe = ragged(kSmall);
  recipe.shape.dtype = Dtype::kF16;
  recipe.scale = 4.0F;
  Problem p = made(recipe);
  // Weights of 1 on values that cancel: each rounding shows in what is left.
  contract::window_rows::set_keys_to_zero(p);
  contract::window_rows::set_values_cancelling(p);
  if (control == "whole_block_rerun") {
    for (std::int32_t row = 1; row < p.rows; row += 3) query_at(p, row, 1)[5] = 0x7e00;
  }
  INFO(control);
  CHECK((decode(p, {control, Switch::kOff}) != decode(p)));
}

}  // namespace broach::test
