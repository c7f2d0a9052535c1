#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>

#include "tests/reference/chunk256.hpp"
#include "tests/support/catch.hpp"
#include "tools/contract/harness/number.hpp"
#include "tools/contract/window_rows/bounds.hpp"
#include "tools/contract/window_rows/cases.hpp"
#include "tools/contract/window_rows/range.hpp"
#include "tools/contract/window_rows/row_range.hpp"

using namespace broach;
using namespace broach::contract;
using namespace broach::contract::window_rows;
using broach::test::chunk256_reference;
using broach::test::library_exponential;
using broach::test::ReferenceFault;

namespace {

Problem problem_of(const Recipe& recipe) {
  auto made = make_problem(recipe);
  REQUIRE(made);
  return std::move(*made);
}

RangeReport checked(const Problem& problem, const std::vector<std::uint16_t>& out) {
  auto report = check_outputs(problem, out);
  REQUIRE(report);
  return *report;
}

Recipe small_recipe(Dtype dtype) {
  Recipe recipe;
  recipe.shape.head_dim = 64;
  recipe.shape.gqa_ratio = 2;
  recipe.shape.window = 300;
  recipe.shape.dtype = dtype;
  recipe.shape.arith = Arith::kChunk256;
  recipe.kv_heads = 2;
  recipe.scale = 2.0F;
  recipe.rows = {{0, 700}, {1, 41}, {0, 685}, {2, 0}, {1, 511}};
  return recipe;
}

// What a fault puts in place of an output, by the range that the output has.
std::vector<std::uint16_t> replaced(
    const Problem& problem,
    const std::function<std::uint16_t(std::uint16_t lowest, std::uint16_t highest)>& replace) {
  std::vector<std::uint16_t> out(problem.out_elems());
  for (std::int32_t row = 0; row < problem.rows; ++row) {
    for (std::int32_t kv_head = 0; kv_head < problem.kv_heads; ++kv_head) {
      const RowView view = view_of(problem, row, kv_head);
      const std::int32_t first = view.first_position / 256;
      const std::int32_t last = (view.first_position + view.keys - 1) / 256;
      RowRange range;
      range_of(view, chunk256_bounds(problem.shape, view.keys, last - first + 1), range);
      for (std::int32_t i = 0; i < view.heads * view.head_dim; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const std::int64_t to =
            problem.out_at(row, kv_head * view.heads + i / view.head_dim) + i % view.head_dim;
        out[static_cast<std::size_t>(to)] =
            replace(round_to(range.lowest[at], problem.shape.dtype),
                    round_to(range.highest[at], problem.shape.dtype));
      }
    }
  }
  return out;
}

std::uint16_t bits_at(std::int32_t place) {
  return static_cast<std::uint16_t>(place >= 0 ? place : 0x8000 | (-1 - place));
}

}  // namespace

TEST_CASE("honest fp32 steps stay in range on ragged shapes", "[contract][range]") {
  RangeReport all;
  for (const CaseSpec& one : ragged_decodes()) {
    INFO(one.name);
    const Problem problem = problem_of(one.recipe);
    const RangeReport report = checked(problem, chunk256_reference(problem, library_exponential));
    if (report.worst) UNSCOPED_INFO(words_of(*report.worst));
    CHECK(report.passed());
    all.add(report);
  }
  // The range is sharp enough to mean something: most outputs are pinned to one value.
  CHECK(all.pinned > all.checked / 2);
  CHECK(all.checked == all.pinned + all.in_range);
}

TEST_CASE("honest fp32 steps stay in range with sinks, and leave it without them",
          "[contract][range]") {
  Recipe recipe = small_recipe(GENERATE(Dtype::kBf16, Dtype::kF16));
  recipe.shape.sinks = Switch::kOn;
  const Problem problem = problem_of(recipe);
  const RangeReport report = checked(problem, chunk256_reference(problem, library_exponential));
  CHECK(report.passed());
  Problem without = problem;
  without.shape.sinks = Switch::kOff;
  CHECK(checked(problem, chunk256_reference(without, library_exponential)).out_of_range > 0);
}

TEST_CASE("every planted fault of an fp32 form is out of range", "[contract][range]") {
  const ReferenceFault fault = GENERATE(
      ReferenceFault::kWindowEarly, ReferenceFault::kMergeUnscaled, ReferenceFault::kTruncatedSums,
      ReferenceFault::kRatioOffByOne, ReferenceFault::kNoScale, ReferenceFault::kLostRun);
  Recipe recipe = small_recipe(GENERATE(Dtype::kBf16, Dtype::kF16));
  recipe.unseen = Unseen::kStale;
  const Problem problem = problem_of(recipe);
  const RangeReport report =
      checked(problem, chunk256_reference(problem, library_exponential, fault));
  CAPTURE(static_cast<int>(fault));
  CHECK(report.out_of_range > 0);
  CHECK_FALSE(report.passed());
  REQUIRE(report.worst);
  CHECK(report.worst->steps_outside > 0);
}

TEST_CASE("both ends of a range pass and one value beyond either does not", "[contract][range]") {
  const Problem problem = problem_of(small_recipe(GENERATE(Dtype::kBf16, Dtype::kF16)));
  const auto lowest = replaced(problem, [](std::uint16_t low, std::uint16_t) { return low; });
  const auto highest = replaced(problem, [](std::uint16_t, std::uint16_t high) { return high; });
  CHECK(checked(problem, lowest).passed());
  CHECK(checked(problem, highest).passed());
  const auto below = replaced(
      problem, [](std::uint16_t low, std::uint16_t) { return bits_at(place_of(low) - 1); });
  const auto above = replaced(
      problem, [](std::uint16_t, std::uint16_t high) { return bits_at(place_of(high) + 1); });
  const RangeReport under = checked(problem, below);
  CHECK(under.out_of_range == under.checked);
  CHECK(under.worst->steps_outside == 1);
  const RangeReport over = checked(problem, above);
  CHECK(over.out_of_range == over.checked);
}

TEST_CASE("NaN, infinities and the sign of zero are told apart", "[contract][range]") {
  Problem problem = problem_of(small_recipe(Dtype::kBf16));
  const auto honest = chunk256_reference(problem, library_exponential);
  const auto with = [&](std::uint16_t bits) {
    auto out = honest;
    out[5] = bits;
    return checked(problem, out);
  };
  CHECK(with(honest[5]).passed());
  for (const int bits : {0x7fc0, 0xffc0, 0x7f80, 0xff80}) {
    const RangeReport report = with(static_cast<std::uint16_t>(bits));
    CHECK(report.nonfinite_mismatch == 1);
    CHECK(report.out_of_range == 0);
    CHECK(report.worst->dim == 5);
  }
  // A value of 1 at a dim where all others are 0: the one row that sees it alone must have +0 or
  // -0 elsewhere, and 1 there.
  for (std::uint16_t& v : problem.v) v = 0;
  const auto zeros = std::vector<std::uint16_t>(problem.out_elems(), 0);
  CHECK(checked(problem, zeros).passed());
  auto ones = zeros;
  ones[7] = 1;  // The least subnormal, where only zeros were added.
  CHECK(checked(problem, ones).out_of_range == 1);
  // A single key's row gives the key's value: one value, whose sign counts.
  const auto at = static_cast<std::size_t>(problem.v_at(3, 0, 0));
  problem.v[at] = 0x3f80;
  auto single = zeros;
  const auto out_at = static_cast<std::size_t>(problem.out_at(3, 0));
  single[out_at] = 0x3f80;
  single[out_at + static_cast<std::size_t>(problem.out_head_stride)] = 0x3f80;
  CHECK(checked(problem, single).passed());
  single[out_at] = 0xbf80;
  CHECK(checked(problem, single).out_of_range == 1);
}

TEST_CASE("non-finite rows are judged by float64's class", "[contract][range]") {
  const Dtype dtype = GENERATE(Dtype::kBf16, Dtype::kF16);
  const std::uint16_t infinity = round_to(std::numeric_limits<double>::infinity(), dtype);
  const std::uint16_t nan = round_to(std::nan(""), dtype);
  Recipe recipe = small_recipe(dtype);
  Problem problem = problem_of(recipe);
  const auto value_at = [&](std::int32_t row, std::int32_t position) {
    return static_cast<std::size_t>(problem.v_at(row, position, 0));
  };
  problem.v[value_at(1, 20)] = infinity;                                        // One row.
  problem.v[value_at(0, 690)] = infinity;                                       // Row 0 alone.
  problem.v[value_at(0, 500)] = static_cast<std::uint16_t>(infinity | 0x8000);  // 0 and 2.
  problem.v[value_at(4, 400) + 1] = nan;
  problem.k[static_cast<std::size_t>(problem.k_at(4, 300, 1))] = infinity;
  const auto honest = chunk256_reference(problem, library_exponential);
  const RangeReport report = checked(problem, honest);
  if (report.worst) UNSCOPED_INFO(words_of(*report.worst));
  CHECK(report.passed());
  // Both heads of KV head 0: +inf in row 1; NaN in row 0 and -inf in row 2; NaN beside it in row 4;
  // one infinite key makes its row's heads of KV head 1 NaN, or weights of 0 where q is negative.
  CHECK(report.nonfinite_matched >= 2 + 2 + 2 + 2);
  for (std::size_t i = 0; i < honest.size(); ++i) {
    if (!is_infinite(honest[i], dtype)) continue;
    auto out = honest;
    out[i] = static_cast<std::uint16_t>(out[i] ^ 0x8000);
    CHECK(checked(problem, out).nonfinite_mismatch == 1);
    out[i] = nan;
    CHECK(checked(problem, out).nonfinite_mismatch == 1);
    out[i] = 0;
    CHECK(checked(problem, out).nonfinite_mismatch == 1);
  }
}

TEST_CASE("a weight that only float64 can hold decides the class", "[contract][range]") {
  Recipe recipe = small_recipe(Dtype::kBf16);
  recipe.rows = {{0, 1}};
  recipe.kv_heads = 1;
  Problem problem = problem_of(recipe);
  for (std::int32_t d = 0; d < 64; ++d) {
    for (std::int32_t head = 0; head < 2; ++head) {
      problem.q[static_cast<std::size_t>(problem.q_at(0, head) + d)] = d == 0 ? 0x3f80 : 0;
    }
    problem.k[static_cast<std::size_t>(problem.k_at(0, 0, 0) + d)] = 0;
    problem.k[static_cast<std::size_t>(problem.k_at(0, 1, 0) + d)] = 0;
  }
  // Scores 0 and -200 (scale 2): e^-200 is 0 in fp32 but not in float64.
  problem.k[static_cast<std::size_t>(problem.k_at(0, 1, 0))] = round_to(-100, Dtype::kBf16);
  problem.v[static_cast<std::size_t>(problem.v_at(0, 1, 0))] = 0x7f80;
  const auto honest = chunk256_reference(problem, library_exponential);
  CHECK(honest[0] == 0x7f80);
  CHECK(checked(problem, honest).passed());
  auto fp32 = honest;
  fp32[0] = 0x7fc0;  // 0 times infinity, as fp32 has it.
  CHECK(checked(problem, fp32).nonfinite_mismatch == 1);
}

TEST_CASE("a short output or an arithmetic without bounds is refused", "[contract][range]") {
  Problem problem = problem_of(small_recipe(Dtype::kBf16));
  std::vector<std::uint16_t> out(problem.out_elems() - 1);
  CHECK_FALSE(check_outputs(problem, out));
  out.push_back(0);
  CHECK(check_outputs(problem, out));
  problem.shape.arith = Arith::kDefault;
  CHECK_FALSE(check_outputs(problem, out));
}

TEST_CASE("a report does not depend on the number of threads", "[contract][range]") {
  const Problem problem = problem_of(small_recipe(Dtype::kF16));
  const auto faulty =
      chunk256_reference(problem, library_exponential, ReferenceFault::kMergeUnscaled);
  const auto one = check_outputs(problem, faulty, 1);
  const auto many = check_outputs(problem, faulty, 7);
  REQUIRE(one);
  REQUIRE(many);
  CHECK(one->pinned == many->pinned);
  CHECK(one->out_of_range == many->out_of_range);
  REQUIRE(one->worst);
  CHECK(words_of(*one->worst) == words_of(*many->worst));
}
