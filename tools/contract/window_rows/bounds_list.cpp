#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/contract/window_rows/bounds.hpp"
#include "tools/contract/window_rows/cases.hpp"

namespace broach::contract::window_rows {
namespace {

// A bound of the range checker in words, with its value for the Gemma-4-like decode.
struct BoundWords {
  std::string_view name;
  double FormBounds::*value;
  std::string_view why;
};

constexpr BoundWords kBounds[] = {
    {"score_chain", &FormBounds::score_chain,
     "chains of 8 fmas and a tree over the lanes: gamma of that many roundings, times sum |q k|"},
    {"score_step", &FormBounds::score_step,
     "a k16 MMA step: 36 * 2^-24 of |accumulator| + sum |q k|"},
    {"score_relative", &FormBounds::score_relative, "the scale's product rounds once"},
    {"tanh_relative", &FormBounds::tanh_relative, "the cap's tanh is within 2 ulps"},
    {"argument", &FormBounds::argument,
     "s - m and m - M round once each, and add up to the distance to the maximum"},
    {"exponential", &FormBounds::exponential, "one portable exponential is within 2 ulps"},
    {"exponentials", &FormBounds::exponentials,
     "those that every weight passes; in tile64 each possible move of the maximum is one more"},
    {"p_relative", &FormBounds::p_relative, "P's representation when it meets V"},
    {"p_absolute", &FormBounds::p_absolute, "the same below the representation's least normal"},
    {"value_step", &FormBounds::value_step,
     "a k16 MMA step of P x V: 36 * 2^-24 of |accumulator| + sum |p v|"},
    {"numerator_chain", &FormBounds::numerator_chain, "the roundings a term of o passes"},
    {"denominator_chain", &FormBounds::denominator_chain, "the roundings a term of l passes"},
    {"underflow", &FormBounds::underflow, "results below 2^-126 lose up to 2 of the least value"},
    {"division", &FormBounds::division, "IEEE division rounds once"},
};

// An arithmetic's bounds for a row of the Gemma-4-like shape, which sees 1,024 keys.
struct BoundsOf {
  std::string_view name;
  FormBounds bounds;
};

std::vector<BoundsOf> gemma_bounds() {
  WindowRowsShape shape = gemma_decode(1, CaseSize::kFull).recipe.shape;
  std::vector<BoundsOf> all{{"chunk256", chunk256_bounds(shape, shape.window, 5)}};
  shape.arith = Arith::kTile64;
  all.push_back({"tile64", tile64_bounds(shape, 17)});
  shape.p32 = Switch::kOn;
  all.push_back({"tile64 p32", tile64_bounds(shape, 17)});
  all.push_back({"mma32 p32", mma32_bounds(shape, 33)});
  return all;
}

}  // namespace

std::vector<ListedBound> listed_bounds() {
  const std::vector<BoundsOf> all = gemma_bounds();
  std::vector<ListedBound> listed;
  for (const BoundWords& bound : kBounds) {
    ListedBound& one = listed.emplace_back();
    one.name = bound.name;
    one.why = bound.why;
    for (const BoundsOf& of : all) one.values.emplace_back(of.name, of.bounds.*bound.value);
  }
  return listed;
}

}  // namespace broach::contract::window_rows
