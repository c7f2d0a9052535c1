#include <cstdint>
#include <string>
#include <vector>

#include "tests/reference/mma_steps.hpp"
#include "tests/support/catch.hpp"
#include "tools/contract/harness/number.hpp"
#include "tools/contract/window_rows/cases.hpp"
#include "tools/contract/window_rows/gates.hpp"
#include "tools/contract/window_rows/range.hpp"

using namespace broach;
using namespace broach::contract;
using namespace broach::contract::window_rows;

namespace {

// Two sequences with an image in each: 20 rows from position 70, 9 from 3.
Recipe small_prefill() {
  Recipe recipe;
  recipe.shape.form = Form::kPrefill;
  recipe.shape.arith = Arith::kTile64;
  recipe.shape.head_dim = 64;
  recipe.shape.gqa_ratio = 2;
  recipe.shape.window = 60;
  recipe.shape.kv_layout = {KvLayoutKind::kRing, 90};
  recipe.scale = 0.8F;
  for (std::int32_t i = 0; i < 20; ++i) {
    recipe.rows.push_back({0, 70 + i, i >= 4 && i < 12 ? 81 : RowAt::kOwn});
  }
  for (std::int32_t i = 0; i < 9; ++i) recipe.rows.push_back({1, 3 + i, i < 3 ? 5 : RowAt::kOwn});
  recipe.sequence_rows = {20, 9};
  recipe.passes_hi = true;
  return recipe;
}

Problem made(const Recipe& recipe) {
  auto problem = make_problem(recipe);
  if (!problem) FAIL(problem.error().message);
  return *std::move(problem);
}

RangeReport judged(const Problem& problem, const std::vector<std::uint16_t>& out) {
  auto range = check_outputs(problem, out, 1);
  if (!range) FAIL(range.error().message);
  return *range;
}

}  // namespace

TEST_CASE("a prefill's rows see their window up to the last key that hi names",
          "[contract][prefill]") {
  const Problem problem = made(small_prefill());
  CHECK(problem.offsets == std::vector<std::int32_t>{0, 20, 29});
  CHECK(problem.sequences() == 2);
  CHECK(problem.first_key(4) == 15);
  CHECK(problem.last_key(4) == 81);
  CHECK(problem.last_key(12) == 82);
  CHECK(problem.max_keys == 90);
  CHECK(problem.slots[19] != problem.slots[20]);
}

TEST_CASE("sequences that do not make up a prefill's rows are refused", "[contract][prefill]") {
  Recipe recipe = small_prefill();
  recipe.sequence_rows = {20, 8};
  const auto refused = make_problem(recipe);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message == "a prefill of 29 rows has sequences of 28 rows in all");
  recipe.sequence_rows.clear();
  CHECK_FALSE(make_problem(recipe));
}

TEST_CASE("a cut makes two sequences of one, and rows taken alone one of each",
          "[contract][prefill]") {
  const Problem problem = made(small_prefill());
  CHECK(problem.cut(13).offsets == std::vector<std::int32_t>{0, 13, 20, 29});
  CHECK(problem.cut(20).offsets == problem.offsets);
  const Problem taken = problem.take({25, 2});
  CHECK(taken.offsets == std::vector<std::int32_t>{0, 1, 2});
  CHECK(taken.positions == std::vector<std::int32_t>{8, 72});
  CHECK(taken.last_keys == taken.positions);
  const auto whole = test::mma_steps_reference(problem);
  const auto alone = test::mma_steps_reference(taken);
  CHECK(difference(taken, alone, problem, whole, {25, 2}).empty());
}

TEST_CASE("a prefill's outputs lie in the range, with each option on and off",
          "[contract][prefill]") {
  Recipe recipe = small_prefill();
  recipe.shape.arith = GENERATE(Arith::kTile64, Arith::kMma32);
  recipe.shape.p32 = GENERATE(Switch::kOff, Switch::kOn);
  recipe.shape.dtype = GENERATE(Dtype::kBf16, Dtype::kF16);
  recipe.shape.sinks = GENERATE(Switch::kOff, Switch::kOn);
  recipe.shape.softcap = recipe.shape.sinks;
  recipe.softcap = 20.0F;
  const Problem problem = made(recipe);
  const RangeReport range = judged(problem, test::mma_steps_reference(problem));
  CHECK(range.passed());
  // 16 bits of P leave no output but one value.
  CHECK((range.pinned > 0) == (recipe.shape.p32 == Switch::kOn));
}

TEST_CASE("the range of a prefill sees a key too many or too few, and 16 bits of P under p32",
          "[contract][prefill]") {
  Recipe recipe = small_prefill();
  recipe.shape.arith = GENERATE(Arith::kTile64, Arith::kMma32);
  recipe.shape.p32 = Switch::kOn;
  const Problem problem = made(recipe);
  Problem other = problem;
  SECTION("rows that stop at their own position") { other.last_keys = other.positions; }
  SECTION("rows that see one key less") {
    for (std::int32_t& last : other.last_keys) --last;
  }
  SECTION("a window that starts one key later") { other.shape.window -= 1; }
  SECTION("P as one 16-bit value") { other.shape.p32 = Switch::kOff; }
  SECTION("another scale") { other.scale *= 1 + 0x1p-8F; }
  const RangeReport range = judged(problem, test::mma_steps_reference(other));
  CHECK_FALSE(range.passed());
  CHECK(range.out_of_range > 0);
}

TEST_CASE("the range sees a slice of the dims that mma32 has left out or added twice",
          "[contract][prefill]") {
  Recipe recipe = small_prefill();
  recipe.shape.arith = Arith::kMma32;
  recipe.shape.p32 = Switch::kOn;
  recipe.shape.gqa_ratio = 1;
  recipe.shape.head_dim = GENERATE(192U, 256U);
  const Problem problem = made(recipe);
  CHECK(judged(problem, test::mma_steps_reference(problem)).passed());
  // What the second slice, dims 128 on, adds to a score is a multiple of the query's part of it.
  const float factor = GENERATE(0.0F, 2.0F);
  Problem other = problem;
  for (std::int32_t row = 0; row < problem.rows; ++row) {
    for (std::int32_t d = 128; d < problem.head_dim(); ++d) {
      std::uint16_t& q = other.q[static_cast<std::size_t>(other.q_at(row, 0) + d)];
      q = round_to(value_of(q, problem.shape.dtype) * static_cast<double>(factor),
                   problem.shape.dtype);
    }
  }
  CHECK(judged(problem, test::mma_steps_reference(other)).out_of_range > 0);
}
