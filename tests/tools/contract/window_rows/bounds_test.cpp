// Each bound of the range checker alone: float64's own output moved by exactly what the bound
// allows stays inside, and moved by one per cent more falls outside.

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "tests/support/catch.hpp"
#include "tools/contract/window_rows/bounds.hpp"
#include "tools/contract/window_rows/row_range.hpp"

using namespace broach;
using namespace broach::contract;
using namespace broach::contract::window_rows;

namespace {

constexpr std::int32_t kDims = 64;
constexpr double kBound = 0x1p-13;

// Two keys of scores s0 and s1 and values v0 and v1 in every dim; one query.
RowView two_keys(double s0, double s1, float v0, float v1, std::int32_t head_dim = kDims) {
  const auto dims = static_cast<std::size_t>(head_dim);
  RowView view;
  view.head_dim = head_dim;
  view.heads = 1;
  view.keys = 2;
  view.queries.assign(dims, 0.0);
  view.keys_f32.assign(2 * dims, 0.0F);
  view.values_f32.assign(dims, v0);
  view.values_f32.resize(2 * dims, v1);
  // Score from four dims of two steps, with cancelling parts so that sum |qk| is not |sum qk|.
  for (const std::size_t d : {0U, 1U, 20U, 21U}) view.queries[d] = 1.0;
  view.keys_f32[0] = static_cast<float>(s0 + 1);
  view.keys_f32[20] = -1.0F;
  view.keys_f32[dims] = static_cast<float>(s1 + 1);
  view.keys_f32[dims + 20] = -1.0F;
  return view;
}

// float64's output with each step moved by its share of a bound.
struct Moved {
  double score0 = 0, score1 = 0;    // Added to the scores.
  double weight0 = 1, weight1 = 1;  // Times the weights, in both sums.
  double p0 = 1, p1 = 1;            // Times the weights in the numerator.
  double p_added = 0;               // Added to both weights in the numerator, with v's sign.
  double numerator = 0;             // Times sum w |v|, added to the numerator.
  double denominator = 1;
  double quotient = 1;
  double added = 0;
};

double output(const RowView& view, double s0, double s1, const Moved& moved) {
  const double v0 = static_cast<double>(view.values_f32[0]);
  const double v1 = static_cast<double>(view.values_f32[static_cast<std::size_t>(view.head_dim)]);
  const auto capped = [&](double s) {
    return view.softcap == 0 ? s : view.softcap * std::tanh(s / view.softcap);
  };
  const double w0 = std::exp(capped(s0) + moved.score0) * moved.weight0;
  const double w1 = std::exp(capped(s1) + moved.score1) * moved.weight1;
  const double magnitude = w0 * std::fabs(v0) + w1 * std::fabs(v1);
  const double top = std::max(w0, w1);
  const double numerator = w0 * v0 * moved.p0 + w1 * v1 * moved.p1 + moved.numerator * magnitude +
                           top * moved.p_added * (std::fabs(v0) + std::fabs(v1));
  return numerator / ((w0 + w1) * moved.denominator) * moved.quotient + moved.added;
}

struct Table {
  std::string name;
  double FormBounds::*bound;
  double s0, s1;
  float v0, v1;
  double softcap;
  Moved (*moved)(double bound);
};

const Table kTable[] = {
    // |s + 1| + |-1| = 3 and 3 for scores of 1: magnitudes of each key's products.
    {"score_chain", &FormBounds::score_chain, 1, 1, 1, -1, 0,
     [](double b) { return Moved{.score0 = 3 * b, .score1 = -3 * b}; }},
    // Two steps that hold products, over accumulators of 0 and 2, then two that hold none over 1.
    {"score_step", &FormBounds::score_step, 1, 1, 1, -1, 0,
     [](double b) { return Moved{.score0 = 7 * b, .score1 = -7 * b}; }},
    {"score_relative", &FormBounds::score_relative, 2, 2, 1, -1, 0,
     [](double b) { return Moved{.score0 = 2 * b, .score1 = -2 * b}; }},
    {"factor_relative", &FormBounds::factor_relative, 2, 2, 1, -1, 0,
     [](double b) { return Moved{.score0 = 2 * b, .score1 = -2 * b}; }},
    {"factor_relative of a capped score", &FormBounds::factor_relative, 2, 2, 1, -1, 4,
     [](double b) {
       const double s = 4 * std::tanh(0.5);
       return Moved{.score0 = s * b, .score1 = -s * b};
     }},
    {"tanh_relative", &FormBounds::tanh_relative, 2, 2, 1, -1, 4,
     [](double b) {
       const double s = 4 * std::tanh(0.5);
       return Moved{.score0 = s * b, .score1 = -s * b};
     }},
    {"argument", &FormBounds::argument, 1, -1, 1, -1, 0,
     [](double b) { return Moved{.score1 = 2 * b}; }},
    {"exponential", &FormBounds::exponential, 1, 1, 1, -1, 0,
     [](double b) { return Moved{.weight0 = 1 + b, .weight1 = 1 / (1 + b)}; }},
    {"p_relative", &FormBounds::p_relative, 1, 1, 1, -1, 0,
     [](double b) { return Moved{.p0 = 1 + b, .p1 = 1 - b}; }},
    {"p_absolute", &FormBounds::p_absolute, 1, 1, 1, -1, 0,
     [](double b) { return Moved{.p_added = b}; }},
    // One step over both keys, from an accumulator of 0.
    {"value_step", &FormBounds::value_step, 1, 1, 1, -1, 0,
     [](double b) { return Moved{.numerator = b}; }},
    {"numerator_chain", &FormBounds::numerator_chain, 1, 1, 1, -1, 0,
     [](double b) { return Moved{.numerator = b}; }},
    {"denominator_chain", &FormBounds::denominator_chain, 1, 1, 2, 1, 0,
     [](double b) { return Moved{.denominator = 1 / (1 + b)}; }},
    // Two keys, beside a sum of weights of 2: a bound a key, of |v| and of 1.
    {"underflow", &FormBounds::underflow, 1, 1, 1, -1, 0,
     [](double b) { return Moved{.added = 2 * b}; }},
    {"division", &FormBounds::division, 1, 1, 2, 1, 0,
     [](double b) { return Moved{.quotient = 1 + b}; }},
};

// Whether float64's output, moved, lies in the range that the bounds leave.
bool allows(const RowView& view, const FormBounds& bounds, double s0, double s1,
            const Moved& moved) {
  RowRange range;
  range_of(view, bounds, range);
  const double at = output(view, s0, s1, moved);
  return at >= range.lowest[0] && at <= range.highest[0];
}

WindowRowsShape shape_of(Arith arith, std::uint32_t head_dim) {
  WindowRowsShape shape;
  shape.head_dim = head_dim;
  shape.arith = arith;
  return shape;
}

}  // namespace

TEST_CASE("each bound allows what it says and no more", "[contract][bounds]") {
  for (const Table& row : kTable) {
    INFO(row.name);
    RowView view = two_keys(row.s0, row.s1, row.v0, row.v1);
    view.softcap = row.softcap;
    FormBounds bounds;
    bounds.*row.bound = kBound;
    bounds.exponentials = 1;
    bounds.tile_keys = 64;
    RowRange range;
    range_of(view, bounds, range);
    const double exact = output(view, row.s0, row.s1, {});
    CHECK(std::fabs(range.exact[0] - exact) < 1e-14);
    const double inside = output(view, row.s0, row.s1, row.moved(kBound * 0.99));
    const double outside = output(view, row.s0, row.s1, row.moved(kBound * 1.01));
    CHECK(inside != exact);
    CHECK((inside >= range.lowest[0] && inside <= range.highest[0]));
    CHECK_FALSE((outside >= range.lowest[0] && outside <= range.highest[0]));
    // Without the bound the same move is outside, so the bound is what lets it pass.
    range_of(view, FormBounds{}, range);
    CHECK_FALSE((inside >= range.lowest[0] && inside <= range.highest[0]));
  }
}

TEST_CASE("each move of the maximum that the spreads allow is one more exponential",
          "[contract][bounds]") {
  // Keys 63 and 64 lie in two tiles; the second may or may not move the maximum.
  const auto radius = [](double s1, double spread) {
    RowView view = two_keys(1, s1, 1, -1);
    view.first_position = 63;
    FormBounds bounds;
    bounds.exponential = kBound;
    bounds.exponentials = 1;
    bounds.tile_keys = 64;
    bounds.score_relative = spread;
    RowRange range;
    range_of(view, bounds, range);
    const double weight = std::exp(s1 - 1);
    return (range.highest[0] - range.exact[0]) * (1 + weight) * (1 + weight) / (4 * weight);
  };
  CHECK(radius(0.5, 0) == Approx(kBound).epsilon(0.01));
  CHECK(radius(1.5, 0) == Approx(2 * kBound).epsilon(0.01));
  // Within both scores' spread of 2^-20, the move may come or not: it is allowed for.
  CHECK(radius(1 - 0x1p-21, 0x1p-20) == Approx(2 * kBound).epsilon(0.02));
  CHECK(radius(1 - 0x1p-18, 0x1p-20) == Approx(kBound).epsilon(0.02));
}

TEST_CASE("no spread of the scores lets an output leave the values' hull", "[contract][bounds]") {
  RowView view = two_keys(1, 0.5, 3, 2);
  FormBounds bounds;
  bounds.score_chain = 1e6;
  RowRange range;
  range_of(view, bounds, range);
  CHECK(range.lowest[0] <= 2.0);
  CHECK(range.lowest[0] > 1.999);
  CHECK(range.highest[0] >= 3.0);
  CHECK(range.highest[0] < 3.001);
  const float sink = 0.0F;
  view.sinks = {&sink, 1};
  range_of(view, bounds, range);
  CHECK(range.lowest[0] <= 0.0);
  CHECK(range.lowest[0] > -0.001);
}

TEST_CASE("chunk256's bounds grow with what they depend on", "[contract][bounds]") {
  WindowRowsShape shape;
  shape.head_dim = 256;
  const FormBounds few = chunk256_bounds(shape, 10, 1);
  const FormBounds many = chunk256_bounds(shape, 10'000, 40);
  CHECK(many.numerator_chain > few.numerator_chain);
  CHECK(many.score_chain == few.score_chain);
  // 8 fmas and a tree of 5: Higham's gamma of 13 roundings.
  CHECK(few.score_chain == Approx(13 * 0x1p-24).epsilon(1e-5));
  shape.head_dim = 80;  // 10 lanes take the tree of 16.
  CHECK(chunk256_bounds(shape, 10, 1).score_chain == Approx(12 * 0x1p-24).epsilon(1e-5));
  shape.softcap = Switch::kOn;
  CHECK(chunk256_bounds(shape, 10, 1).tanh_relative > 0);
  CHECK(few.tanh_relative == 0);
}

TEST_CASE("a slice's chain of steps begins again from 0", "[contract][bounds]") {
  // Products in steps 0 and 1 of 16: 3 of magnitude, then accumulators of 2 before step 1 and of 1
  // before each later step: 6 in the first slice of 128 dims, 8 more in one chain over all 256.
  const RowView view = two_keys(1, 1, 1, -1, 256);
  FormBounds bounds;
  bounds.score_step = kBound;
  const auto by = [](double b) { return Moved{.score0 = b, .score1 = -b}; };
  constexpr double kSliced = 3 + 2 + 6;
  constexpr double kWhole = kSliced + 8;
  bounds.slice_dims = 128;
  CHECK(allows(view, bounds, 1, 1, by(0.99 * kSliced * kBound)));
  CHECK_FALSE(allows(view, bounds, 1, 1, by(1.01 * kSliced * kBound)));
  bounds.slice_dims = 0;
  CHECK(allows(view, bounds, 1, 1, by(0.99 * kWhole * kBound)));
  CHECK_FALSE(allows(view, bounds, 1, 1, by(1.01 * kWhole * kBound)));
  // The slices' sums are added with roundings of their own, each of all products' magnitude.
  bounds = {};
  bounds.slice_dims = 128;
  bounds.score_chain = kBound;
  CHECK(allows(view, bounds, 1, 1, by(0.99 * 3 * kBound)));
  CHECK_FALSE(allows(view, bounds, 1, 1, by(1.01 * 3 * kBound)));
}

TEST_CASE("P in two halves takes a step each, over what the first has left", "[contract][bounds]") {
  // Equal weights on values of 2 and 1: 3 of magnitude a step, and 3 in the accumulator once the
  // high halves have joined.
  const RowView view = two_keys(1, 1, 2, 1);
  FormBounds bounds;
  bounds.value_step = kBound;
  bounds.tile_keys = 64;
  const auto by = [](double b) { return Moved{.numerator = b}; };
  CHECK(allows(view, bounds, 1, 1, by(0.99 * kBound)));
  CHECK_FALSE(allows(view, bounds, 1, 1, by(1.01 * kBound)));
  bounds.halves = 2;
  CHECK(allows(view, bounds, 1, 1, by(0.99 * 2 * kBound)));
  CHECK_FALSE(allows(view, bounds, 1, 1, by(1.01 * 2 * kBound)));
}

TEST_CASE("a tile's chain of steps begins again from 0", "[contract][bounds]") {
  // Two keys in two steps: the second meets the first's 2 of 3 unless a tile begins between them.
  RowView view = two_keys(1, 1, 2, 1);
  view.first_position = 31;
  FormBounds bounds;
  bounds.value_step = kBound;
  const auto by = [](double b) { return Moved{.numerator = b}; };
  const double whole = 1 + 2.0 / 3;
  bounds.tile_keys = 64;
  CHECK(allows(view, bounds, 1, 1, by(0.99 * whole * kBound)));
  CHECK_FALSE(allows(view, bounds, 1, 1, by(1.01 * whole * kBound)));
  bounds.tile_keys = 32;
  CHECK(allows(view, bounds, 1, 1, by(0.99 * kBound)));
  CHECK_FALSE(allows(view, bounds, 1, 1, by(1.01 * kBound)));
}

TEST_CASE("a soft cap's quotient and product round once each", "[contract][bounds]") {
  RowView view = two_keys(2, 2, 1, -1);
  view.softcap = 4;
  const double middle = std::tanh(0.5);
  const double moved = 4 * ((1 - middle * middle) * 0.5 + middle) * kFloatUnit;
  const auto by = [](double b) { return Moved{.score0 = b, .score1 = -b}; };
  CHECK(allows(view, {}, 2, 2, by(0.99 * moved)));
  CHECK_FALSE(allows(view, {}, 2, 2, by(1.01 * moved)));
}

TEST_CASE("P's representation is its type's unit, or its square with two halves",
          "[contract][bounds]") {
  struct Row {
    Dtype dtype;
    Switch p32;
    double relative, absolute;
    std::int32_t halves;
  };
  constexpr Row kRows[] = {{Dtype::kBf16, Switch::kOff, 0x1p-8, 0x1p-134, 1},
                           {Dtype::kBf16, Switch::kOn, 0x1p-16, 0x1p-134, 2},
                           {Dtype::kF16, Switch::kOff, 0x1p-11, 0x1p-25, 1},
                           {Dtype::kF16, Switch::kOn, 0x1p-22, 0x1p-25, 2}};
  for (const Row& row : kRows) {
    for (const Arith arith : {Arith::kTile64, Arith::kTile64Ex2, Arith::kMma32}) {
      WindowRowsShape shape = shape_of(arith, 64);
      shape.dtype = row.dtype;
      shape.p32 = row.p32;
      const auto bounds = bounds_of(shape, 0, 1);
      REQUIRE(bounds);
      CHECK(bounds->p_relative == row.relative);
      CHECK(bounds->p_absolute == row.absolute);
      CHECK(bounds->halves == row.halves);
    }
    // chunk256 keeps P in fp32.
    CHECK(chunk256_bounds(shape_of(Arith::kChunk256, 64), 1, 1).p_relative == 0);
  }
}

TEST_CASE("tile64's bounds count what its page says", "[contract][bounds]") {
  WindowRowsShape shape = shape_of(Arith::kTile64, 512);
  const auto roundings = [](double bound) { return bound / kFloatUnit / (1 + bound); };
  FormBounds bounds = tile64_bounds(shape, 17);
  CHECK(bounds.score_step == 36 * kFloatUnit);
  CHECK(bounds.value_step == 36 * kFloatUnit);
  CHECK(bounds.score_chain == 0);
  CHECK(bounds.slice_dims == 0);
  CHECK(bounds.tile_keys == 64);
  CHECK(bounds.exponentials == 2);
  // pv b, then an fma a tile; a pair, a chain of 7 and two joins before them in l.
  CHECK(roundings(bounds.numerator_chain) == Approx(1 + 17));
  CHECK(roundings(bounds.denominator_chain) == Approx(1 + 7 + 2 + 1 + 17));
  shape.sinks = Switch::kOn;
  bounds = tile64_bounds(shape, 17);
  CHECK(bounds.exponentials == 3);
  CHECK(roundings(bounds.numerator_chain) == Approx(1 + 17 + 1));
  CHECK(roundings(bounds.denominator_chain) == Approx(1 + 7 + 2 + 1 + 17 + 1));
}

TEST_CASE("tile64_ex2's bounds are tile64's but for its factor", "[contract][bounds]") {
  WindowRowsShape shape = shape_of(Arith::kTile64Ex2, 512);
  const FormBounds tile64 = tile64_bounds(shape, 17);
  FormBounds bounds = tile64_ex2_bounds(shape, 17);
  CHECK(bounds.numerator_chain == tile64.numerator_chain);
  CHECK(bounds.denominator_chain == tile64.denominator_chain);
  CHECK(bounds.exponential == tile64.exponential);
  // The scale is in the factor, and no score is rounded.
  CHECK(bounds.score_relative == 0);
  CHECK(bounds.factor_relative == 1.25 * kFloatUnit);
  CHECK(bounds.greatest_p == kFloatUnit);
  CHECK(bounds.underflow == 8 * 0x1p-126);
  shape.softcap = Switch::kOn;
  bounds = tile64_ex2_bounds(shape, 17);
  CHECK(bounds.score_relative == kFloatUnit);
  CHECK(bounds.factor_relative == 0.25 * kFloatUnit);
  // log2(e) as fp32 is that near.
  constexpr double kLog2E = 1.4426950408889634;
  CHECK(std::abs(0x1.715476p+0 / kLog2E - 1) < 0.225 * kFloatUnit);
}

TEST_CASE("the rounding of a maximum lets P's absolute error weigh more", "[contract][bounds]") {
  // Scores of 40: P of the greatest is 2^-(40 log2(e) 2^-8) of 1 at the least.
  const RowView view = two_keys(40, 40, 1, -1);
  FormBounds bounds;
  bounds.p_absolute = kBound;
  const auto by = [](double b) { return Moved{.p_added = b}; };
  CHECK_FALSE(allows(view, bounds, 40, 40, by(1.05 * kBound)));
  bounds.greatest_p = 0x1p-8;
  const double grown = kBound * std::exp2(40 * 1.4426950408889634 * 0x1p-8);
  CHECK(allows(view, bounds, 40, 40, by(0.99 * grown)));
  CHECK_FALSE(allows(view, bounds, 40, 40, by(1.01 * grown)));
}

TEST_CASE("mma32's bounds count what its page says", "[contract][bounds]") {
  const auto roundings = [](double bound) { return bound / kFloatUnit / (1 + bound); };
  // Sums of slices of 128 dims: none, one, one, three.
  struct Row {
    std::uint32_t head_dim;
    double additions;
  };
  for (const Row& row : {Row{128, 0}, Row{192, 1}, Row{256, 1}, Row{512, 3}}) {
    CAPTURE(row.head_dim);
    const FormBounds bounds = mma32_bounds(shape_of(Arith::kMma32, row.head_dim), 33);
    CHECK(roundings(bounds.score_chain) == Approx(row.additions));
    CHECK(bounds.slice_dims == 128);
    CHECK(bounds.score_step == 36 * kFloatUnit);
    CHECK(bounds.value_step == 36 * kFloatUnit);
    CHECK(bounds.tile_keys == 32);
    CHECK(bounds.exponentials == 1);
    // An fma a tile; a pair, a chain of 3 and two joins before them in l.
    CHECK(roundings(bounds.numerator_chain) == Approx(33));
    CHECK(roundings(bounds.denominator_chain) == Approx(1 + 3 + 2 + 33));
  }
  WindowRowsShape shape = shape_of(Arith::kMma32, 64);
  shape.sinks = Switch::kOn;
  const FormBounds bounds = mma32_bounds(shape, 33);
  CHECK(bounds.exponentials == 2);
  CHECK(roundings(bounds.numerator_chain) == Approx(33 + 1));
  CHECK(roundings(bounds.denominator_chain) == Approx(1 + 3 + 2 + 33 + 1));
}

TEST_CASE("a row's bounds count the pieces that its keys touch", "[contract][bounds]") {
  // Two keys, in one piece or astride an edge of two.
  for (const auto& [arith, piece] : {std::pair{Arith::kChunk256, 256},
                                     {Arith::kTile64, 64},
                                     {Arith::kTile64Ex2, 64},
                                     {Arith::kMma32, 32}}) {
    CAPTURE(piece);
    const WindowRowsShape shape = shape_of(arith, 64);
    const auto within = bounds_of(shape, piece - 2, 2);
    const auto astride = bounds_of(shape, piece - 1, 2);
    const auto later = bounds_of(shape, 40 * piece - 1, 2);
    REQUIRE((within && astride && later));
    CHECK(astride->numerator_chain > within->numerator_chain);
    CHECK(astride->denominator_chain > within->denominator_chain);
    CHECK(later->numerator_chain == astride->numerator_chain);
  }
}
