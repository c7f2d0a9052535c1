#include <fmt/core.h>

#include <string_view>
#include <vector>

#include "specializer/shape.hpp"
#include "tools/contract/harness/findings.hpp"
#include "tools/contract/harness/report.hpp"
#include "tools/contract/window_rows/bounds.hpp"

namespace broach::contract {
namespace {

using Json = nlohmann::ordered_json;

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

std::string list_text(const ContractRequest& request) {
  std::string text = "kernels and the cases that try them\n";
  for (const DecodeCase& one : request.cases) {
    text += fmt::format("  {}\n      {}\n", one.name, specializer::to_json(one.recipe.shape));
  }
  text += "\nplanted controls, and the gate that has to see each\n";
  for (const Control& control : request.controls) {
    text += fmt::format("  {}, gate {}: {}\n      {}\n", name_of(control),
                        static_cast<int>(control.gate), control.words, control.why);
  }
  text += "\nbounds of the range checker, with their values for the Gemma-4-like shape\n";
  const std::vector<BoundsOf> all = gemma_bounds();
  for (const BoundWords& bound : kBounds) {
    std::string values;
    for (const BoundsOf& one : all) {
      values +=
          fmt::format("{}{} {:.3g}", values.empty() ? "" : ", ", one.name, one.bounds.*bound.value);
    }
    text += fmt::format("  {}: {}\n      {}\n", bound.name, values, bound.why);
  }
  text +=
      "\ngate 5 compiles so many kernels for each target, fewer where one does not serve all\n ";
  for (const LimitScope& scope : request.limits.scopes) {
    text += fmt::format(" {} ({})", scope.target, scope.kernels.size());
  }
  text += "\n\nknown findings of gate 5\n";
  for (const Finding& finding : findings()) {
    text += fmt::format("  {} on {}*: {}\n      {}\n", finding.function, finding.targets,
                        finding.what, finding.why);
  }
  return text;
}

nlohmann::ordered_json list_json(const ContractRequest& request) {
  Json cases = Json::array();
  for (const DecodeCase& one : request.cases) {
    cases.push_back({{"case", one.name},
                     {"shape", Json::parse(specializer::to_json(one.recipe.shape))},
                     {"digest", pinned_digest(one.name)}});
  }
  Json tried = Json::array();
  for (const Control& control : request.controls) {
    tried.push_back({{"name", control.name},
                     {"arith", specializer::name_of(control.arith)},
                     {"form", specializer::name_of(control.form)},
                     {"what", control.words},
                     {"gate", static_cast<int>(control.gate)},
                     {"why", control.why}});
  }
  Json stated = Json::array();
  const std::vector<BoundsOf> all = gemma_bounds();
  for (const BoundWords& bound : kBounds) {
    Json values = Json::object();
    for (const BoundsOf& one : all) values[std::string(one.name)] = one.bounds.*bound.value;
    stated.push_back({{"name", bound.name}, {"values", std::move(values)}, {"why", bound.why}});
  }
  Json known = Json::array();
  for (const Finding& finding : findings()) {
    known.push_back({{"function", finding.function},
                     {"targets", finding.targets},
                     {"what", finding.what},
                     {"why", finding.why}});
  }
  Json targets = Json::array();
  for (const LimitScope& scope : request.limits.scopes) {
    targets.push_back({{"target", scope.target}, {"kernels", scope.kernels.size()}});
  }
  return {{"kernels", std::move(cases)},
          {"controls", std::move(tried)},
          {"bounds", std::move(stated)},
          {"limit_targets", std::move(targets)},
          {"known_findings", std::move(known)}};
}

}  // namespace broach::contract
