#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <span>

#include "tests/support/catch.hpp"
#include "tools/contract/harness/number.hpp"
#include "tools/contract/window_rows/cases.hpp"
#include "tools/contract/window_rows/inputs.hpp"

using namespace broach;
using namespace broach::contract;
using namespace broach::contract::window_rows;

namespace {

Recipe small_recipe(KvLayout layout) {
  Recipe recipe;
  recipe.shape.head_dim = 64;
  recipe.shape.gqa_ratio = 2;
  recipe.shape.window = 20;
  recipe.shape.kv_layout = layout;
  recipe.shape.arith = Arith::kChunk256;
  recipe.kv_heads = 2;
  recipe.rows = {{0, 90}, {1, 41}, {0, 85}, {2, 3}};
  return recipe;
}

double rms_of(const std::uint16_t* elements, std::size_t count, Dtype dtype) {
  double squares = 0;
  for (std::size_t i = 0; i < count; ++i) squares += std::pow(value_of(elements[i], dtype), 2);
  return std::sqrt(squares / static_cast<double>(count));
}

// Every visible key and value of every row, in order, wherever the layout keeps them.
std::vector<std::uint16_t> seen_by_rows(const Problem& p) {
  std::vector<std::uint16_t> seen;
  for (std::int32_t row = 0; row < p.rows; ++row) {
    for (std::int32_t j = p.first_key(row); j <= p.positions[static_cast<std::size_t>(row)]; ++j) {
      for (std::int32_t head = 0; head < p.kv_heads; ++head) {
        const auto k = p.k.begin() + p.k_at(row, j, head);
        const auto v = p.v.begin() + p.v_at(row, j, head);
        seen.insert(seen.end(), k, k + p.head_dim());
        seen.insert(seen.end(), v, v + p.head_dim());
      }
    }
  }
  return seen;
}

}  // namespace

TEST_CASE("a recipe's numbers do not depend on layout, slots, strides or length",
          "[contract][inputs]") {
  const auto plain = make_problem(small_recipe({KvLayoutKind::kLinear, 0}));
  REQUIRE(plain);
  const std::vector<std::uint16_t> seen = seen_by_rows(*plain);
  std::vector<Recipe> others = {
      small_recipe({KvLayoutKind::kRing, 32}), small_recipe({KvLayoutKind::kRing, 1000}),
      small_recipe({KvLayoutKind::kPaged, 16}), small_recipe({KvLayoutKind::kLinear, 0})};
  others[0].slot_of_stream = {4, 0, 2};
  others[1].order = CacheOrder::kHeadsFirst;
  others[2].slot_count = 5;
  others[3].length = 91 * 16;
  others[3].padding = 16;
  for (const Recipe& other : others) {
    const auto made = make_problem(other);
    REQUIRE(made);
    CHECK(seen_by_rows(*made) == seen);
    CHECK(made->positions == plain->positions);
  }
}

TEST_CASE("cells that no row sees are NaN, and the rest finite", "[contract][inputs]") {
  const KvLayout layout =
      GENERATE(KvLayout{KvLayoutKind::kRing, 40}, KvLayout{KvLayoutKind::kPaged, 16});
  const auto made = make_problem(small_recipe(layout));
  REQUIRE(made);
  std::set<std::int64_t> cells;
  for (std::int32_t row = 0; row < made->rows; ++row) {
    const std::int32_t last = made->positions[static_cast<std::size_t>(row)];
    for (std::int32_t j = made->first_key(row); j <= last; ++j) {
      for (std::int32_t head = 0; head < made->kv_heads; ++head) {
        const std::int64_t at = made->k_at(row, j, head);
        for (std::int32_t d = 0; d < made->head_dim(); ++d) cells.insert(at + d);
      }
    }
  }
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < made->k.size(); ++i) {
    const bool nan = is_nan(made->k[i], Dtype::kBf16);
    if (cells.contains(static_cast<std::int64_t>(i)) == nan) ++wrong;
  }
  CHECK(wrong == 0);
  CHECK(cells.size() < made->k.size());
}

TEST_CASE("inputs have the sizes that real ones have", "[contract][inputs]") {
  const auto made = make_problem(gemma_decode(3, CaseSize::kCut).recipe);
  REQUIRE(made);
  const Dtype dtype = made->shape.dtype;
  for (std::int32_t row = 0; row < made->rows; ++row) {
    for (std::int32_t head = 0; head < made->heads(); ++head) {
      const double rms = rms_of(made->q.data() + made->q_at(row, head), 256, dtype);
      CHECK(rms > 0.949);
      CHECK(rms < 1.051);
    }
    const std::int32_t last = made->positions[static_cast<std::size_t>(row)];
    CHECK(last - made->first_key(row) + 1 == 1024);
    double least = 1, most = 0;
    for (std::int32_t j = made->first_key(row); j <= last; ++j) {
      const double rms = rms_of(made->k.data() + made->k_at(row, j, 0), 256, dtype);
      least = std::min(least, rms);
      most = std::max(most, rms);
      const double value = rms_of(made->v.data() + made->v_at(row, j, 0), 256, dtype);
      CHECK(std::fabs(value - 1) < 0.01);
    }
    CHECK(least > 0.0595);
    CHECK(least < 0.061);
    CHECK(most < 0.1305);
    CHECK(most > 0.129);
  }
  CHECK(*std::max_element(made->positions.begin(), made->positions.end()) == 39'999);
}

TEST_CASE("every third row has a key like one of its queries", "[contract][inputs]") {
  const auto made = make_problem(small_recipe({KvLayoutKind::kLinear, 0}));
  REQUIRE(made);
  double greatest = 0;
  for (std::int32_t j = made->first_key(0); j <= made->positions[0]; ++j) {
    for (std::int32_t head = 0; head < made->heads(); ++head) {
      const std::uint16_t* q = made->q.data() + made->q_at(0, head);
      const std::uint16_t* k = made->k.data() + made->k_at(0, j, head / 2);
      double dot = 0;
      for (std::int32_t d = 0; d < 64; ++d) {
        dot += value_of(q[d], Dtype::kBf16) * value_of(k[d], Dtype::kBf16);
      }
      greatest = std::max(greatest,
                          dot / (64 * rms_of(q, 64, Dtype::kBf16) * rms_of(k, 64, Dtype::kBf16)));
    }
  }
  CHECK(greatest > 0.999);  // The cosine: the same direction, both rounded to 8 bits.
}

TEST_CASE("rows that one ring cannot serve together are refused by name", "[contract][inputs]") {
  Recipe recipe = small_recipe({KvLayoutKind::kRing, 24});
  const auto made = make_problem(recipe);
  REQUIRE_FALSE(made);
  CHECK(made.error().code == ErrorCode::kInvalidArgument);
  CHECK(made.error().message ==
        "stream 0 at position 85 sees keys that a ring of 24 no longer holds at position 90");
  recipe = small_recipe({KvLayoutKind::kLinear, 0});
  recipe.length = 50;
  CHECK_FALSE(make_problem(recipe));
}

TEST_CASE("every named case can be made, with every ratio and head_dim among them",
          "[contract][cases]") {
  std::set<std::uint32_t> ratios, head_dims;
  std::set<std::string> names;
  std::vector<CaseSpec> cases = ragged_decodes(Arith::kTile64);
  for (CaseSpec& served : served_decodes(CaseSize::kCut)) cases.push_back(std::move(served));
  for (const CaseSpec& one : cases) {
    INFO(one.name);
    const auto made = make_problem(one.recipe);
    REQUIRE(made);
    CHECK(names.insert(one.name).second);
    ratios.insert(one.recipe.shape.gqa_ratio);
    head_dims.insert(one.recipe.shape.head_dim);
  }
  for (const std::uint32_t ratio : {1U, 2U, 3U, 5U, 7U, 8U, 12U, 16U, 32U}) {
    CHECK(ratios.contains(ratio));
  }
  for (const std::uint32_t dim : {64U, 80U, 96U, 112U, 128U, 192U, 256U, 512U}) {
    CHECK(head_dims.contains(dim));
  }
}
