#include <cstdint>
#include <string>
#include <vector>

#include "tests/kernel_src/rows_kernel.hpp"
#include "tests/support/catch.hpp"

namespace broach::test {
namespace {

QkRowsShape shape_of(std::uint32_t head_dim, std::uint32_t rope_dim, HeadNorm norm, QkOrder order) {
  QkRowsShape shape;
  shape.head_dim = head_dim;
  shape.gqa_ratio = 2;
  shape.rope_dim = rope_dim;
  shape.norm = norm;
  shape.order = order;
  return shape;
}

/// Every norm, order, style, layout and type of the family, each more than once.
std::vector<QkRowsShape> shapes() {
  std::vector<QkRowsShape> all{
      shape_of(64, 64, HeadNorm::kL2, QkOrder::kRopeNorm),
      shape_of(80, 40, HeadNorm::kRms, QkOrder::kNormRope),
      shape_of(128, 128, HeadNorm::kNone, QkOrder::kRopeNorm),
      shape_of(192, 64, HeadNorm::kL2, QkOrder::kNormRope),
      shape_of(256, 256, HeadNorm::kRms, QkOrder::kRopeNorm),
      shape_of(512, 128, HeadNorm::kRms, QkOrder::kNormRope),
      shape_of(112, 0, HeadNorm::kRms, QkOrder::kRopeNorm),
      shape_of(96, 0, HeadNorm::kNone, QkOrder::kRopeNorm),
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].rope_style = i % 2 == 1 ? RopeStyle::kInterleaved : RopeStyle::kHalf;
    all[i].q_scale = i % 3 == 0 ? Switch::kOn : Switch::kOff;
    all[i].dtype = i % 4 >= 2 ? Dtype::kF16 : Dtype::kBf16;
    if (i % 3 == 1) all[i].kv_layout = {KvLayoutKind::kRing, 50};
    if (i % 3 == 2) all[i].kv_layout = {KvLayoutKind::kPaged, 16};
  }
  all[1].gqa_ratio = 5;
  all[2].gqa_ratio = 1;
  return all;
}

const std::vector<int> kPositions = {0, 5, 199, 40, 77};
const std::vector<int> kSlots = {0, 1, 2, 0, 1};

std::size_t differences(const QkRowsShape& shape, runtime::Device& device = rows_host(),
                        const specializer::Variant& variant = {}, std::uint32_t splits = 1) {
  QkTensors t(shape, 3, kPositions, kSlots, 256);
  const auto ran = run_qk(t, device, variant, splits);
  if (!ran) FAIL(ran.error().message);
  return QkReference{t}.differences();
}

}  // namespace

TEST_CASE("every norm, order, style and layout has the definition's bits and writes nothing else",
          "[kernel_src][qk_rows]") {
  for (const QkRowsShape& shape : shapes()) {
    INFO(specializer::to_json(shape));
    CHECK(differences(shape) == 0);
  }
}

TEST_CASE("the generic kernel and any split of a row's heads have the same bits",
          "[kernel_src][qk_rows]") {
  const auto all = shapes();
  for (const std::size_t i : {0U, 1U, 5U}) {
    INFO(specializer::to_json(all[i]));
    CHECK(differences(all[i], rows_host(), {"", Switch::kOn}) == 0);
    CHECK(differences(all[i], rows_host(), {}, 3) == 0);
  }
}

TEST_CASE("positions past 199,800 turn by their own angle", "[kernel_src][qk_rows]") {
  QkRowsShape shape = shape_of(64, 64, HeadNorm::kL2, QkOrder::kRopeNorm);
  shape.kv_layout = {KvLayoutKind::kRing, 64};
  QkTensors t(shape, 2, {199801, 199863, 1048575}, {0, 1, 2}, 64);
  REQUIRE(run_qk(t));
  CHECK(QkReference{t}.differences() == 0);
}

TEST_CASE("queries may be prepared where they lie", "[kernel_src][qk_rows]") {
  QkRowsShape shape = shape_of(64, 64, HeadNorm::kL2, QkOrder::kRopeNorm);
  QkTensors apart(shape, 2, {3, 9}, {0, 1}, 16);
  QkTensors in_place(shape, 2, {3, 9}, {0, 1}, 16);
  in_place.q_out = in_place.q;
  in_place.params.q_out_row_stride = in_place.params.q_row_stride;
  REQUIRE(run_qk(apart));
  // The launch's q and q_out are one copy.
  const RowsKernel& kernel = rows_kernel(rows_host(), shape);
  BroachQkRows params = in_place.params;
  params.q = params.q_out = in_place.q_out.data();
  REQUIRE(launch_rows(kernel, 0, params, 2, 1, 1));
  std::size_t wrong = 0;
  for (std::size_t row = 0; row < 2; ++row) {
    for (std::size_t i = 0; i < 4 * 64; ++i) {
      wrong +=
          in_place.q_out[row * static_cast<std::size_t>(params.q_row_stride) + i] !=
                  apart.q_out[row * static_cast<std::size_t>(apart.params.q_out_row_stride) + i]
              ? 1U
              : 0U;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("an infinity or NaN stays in its own head", "[kernel_src][qk_rows]") {
  QkRowsShape shape = shape_of(64, 64, HeadNorm::kL2, QkOrder::kRopeNorm);
  QkTensors clean(shape, 2, {3, 9}, {0, 1}, 16);
  QkTensors planted(shape, 2, {3, 9}, {0, 1}, 16);
  const std::uint16_t bits = GENERATE(as<std::uint16_t>{}, 0x7f80, 0xff80, 0x7fc0);
  planted.q[64 + 5] = bits;  // Head 1 of row 0.
  REQUIRE(run_qk(clean));
  REQUIRE(run_qk(planted));
  CHECK(QkReference{planted}.differences() == 0);
  for (std::size_t i = 0; i < clean.q_out.size(); ++i) {
    if (i < 64 || i >= 128) REQUIRE(clean.q_out[i] == planted.q_out[i]);
  }
  CHECK(clean.cache_k == planted.cache_k);
}

TEST_CASE("a checked qk_rows says which argument of which row is out of range",
          "[kernel_src][qk_rows]") {
  QkRowsShape shape = shape_of(64, 64, HeadNorm::kNone, QkOrder::kRopeNorm);
  shape.kv_layout = {KvLayoutKind::kPaged, 16};
  shape.checked = Switch::kOn;
  const auto message = [&](const auto& spoil) {
    QkTensors t(shape, 2, {3, 9}, {0, 1}, 64);
    spoil(t);
    const auto ran = run_qk(t);
    return ran ? std::string("ran") : ran.error().message;
  };
  const auto has = [](const std::string& text, const char* part) {
    INFO(text);
    CHECK(text.find(part) != std::string::npos);
  };
  CHECK(message([](QkTensors&) {}) == "ran");
  has(message([](QkTensors& t) { t.row_slots[1] = 3; }), "slot is outside 0 to slots - 1: 3");
  has(message([](QkTensors& t) { t.positions[1] = -4; }), "position is negative: -4");
  has(message([](QkTensors& t) { t.positions[1] = 64; }), "past its slot's length: 64");
  has(message([](QkTensors& t) { t.table[0] = 99; }), "page is outside 0 to pages - 1: 99");
  has(message([](QkTensors& t) { t.inverse[0] = 1e6F; }), "makes an angle past 2^20: 3");
}

TEST_CASE("every planted fault of qk_rows changes outputs", "[kernel_src][qk_rows]") {
  QkRowsShape shape = shape_of(64, 64, HeadNorm::kL2, QkOrder::kRopeNorm);
  shape.q_scale = Switch::kOn;
  const std::string control =
      GENERATE(as<std::string>{}, "rope_unrounded", "norm_unrounded", "wrong_pairing");
  INFO(control);
  CHECK(differences(shape) == 0);
  CHECK(differences(shape, rows_host(), {control, Switch::kOff}) > 0);
}

TEST_CASE("a GPU's qk_rows has the host's bits", "[kernel_src][qk_rows][gpu]") {
  auto gpu = runtime::open_device("cuda");
  if (!gpu) BROACH_SKIP("no GPU: " + gpu.error().message);
  for (const QkRowsShape& shape : shapes()) {
    INFO(specializer::to_json(shape));
    CHECK(differences(shape, **gpu) == 0);
    CHECK(differences(shape, **gpu, {"", Switch::kOn}, 2) == 0);
  }
  // The looped nGPT model: 16 query heads over 4, a third of the rows past position 199,800.
  QkRowsShape model = shape_of(256, 256, HeadNorm::kL2, QkOrder::kRopeNorm);
  model.gqa_ratio = 4;
  model.q_scale = Switch::kOn;
  std::vector<int> positions;
  std::vector<int> slots;
  for (int i = 0; i < 64; ++i) {
    positions.push_back(i % 3 == 0 ? 199801 + i : 1000 * i);
    slots.push_back(0);
  }
  model.kv_layout = {KvLayoutKind::kRing, 200000};
  QkTensors t(model, 4, positions, slots, 200000);
  REQUIRE(run_qk(t, **gpu));
  CHECK(QkReference{t}.differences() == 0);
}

}  // namespace broach::test
