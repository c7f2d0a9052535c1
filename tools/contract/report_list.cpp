#include <fmt/format.h>

#include <string_view>

#include "specializer/shape.hpp"
#include "tools/contract/bounds.hpp"
#include "tools/contract/report.hpp"

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
     "a k16 matrix step: 36 * 2^-24 of |accumulator| + sum |q k|"},
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
     "a k16 matrix step of P x V: 36 * 2^-24 of |accumulator| + sum |p v|"},
    {"numerator_chain", &FormBounds::numerator_chain, "the roundings a term of o passes"},
    {"denominator_chain", &FormBounds::denominator_chain, "the roundings a term of l passes"},
    {"underflow", &FormBounds::underflow, "results below 2^-126 lose up to 2 of the least value"},
    {"division", &FormBounds::division, "IEEE division rounds once"},
};

FormBounds gemma_bounds() {
  const WindowRowsShape shape = gemma_decode(1, CaseSize::kFull).recipe.shape;
  return chunk256_bounds(shape, shape.window, 5);
}

}  // namespace

std::string list_text(const ContractRequest& request) {
  std::string text = "kernels and the cases that try them\n";
  for (const DecodeCase& one : request.cases) {
    text += fmt::format("  {}\n      {}\n", one.name, specializer::to_json(one.recipe.shape));
  }
  text += "\nplanted controls, and the gate that has to see each\n";
  for (const Control& control : request.controls) {
    text += fmt::format("  {} ({}, gate {}): {}\n      {}\n", control.name,
                        specializer::name_of(control.arith), static_cast<int>(control.gate),
                        control.words, control.why);
  }
  text += "\nbounds of the range checker, with their values for the Gemma-4-like decode\n";
  const FormBounds bounds = gemma_bounds();
  for (const BoundWords& bound : kBounds) {
    text += fmt::format("  {} {:.3g}: {}\n", bound.name, bounds.*bound.value, bound.why);
  }
  text += "\ngate 5 compiles for\n ";
  for (const std::string& target : request.limit_targets) text += " " + target;
  return text + "\n";
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
                     {"what", control.words},
                     {"gate", static_cast<int>(control.gate)},
                     {"why", control.why}});
  }
  Json stated = Json::array();
  const FormBounds bounds = gemma_bounds();
  for (const BoundWords& bound : kBounds) {
    stated.push_back({{"name", bound.name}, {"value", bounds.*bound.value}, {"why", bound.why}});
  }
  return {{"kernels", std::move(cases)},
          {"controls", std::move(tried)},
          {"bounds", std::move(stated)},
          {"limit_targets", request.limit_targets}};
}

}  // namespace broach::contract
