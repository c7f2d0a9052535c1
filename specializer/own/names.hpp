#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <vector>

#include "broach/result.hpp"
#include "specializer/own/description.hpp"

namespace broach::specializer::own {

/// The virtual name of the source that broach writes: constants, then the family's main file.
inline constexpr std::string_view kGeneratedMain = "broach-main.cu";

/// vendor.family: parts of lower-case letters, digits and underscores, two at least.
bool is_family_name(std::string_view name);
std::string family_name_fault(std::string_view name);

bool is_identifier(std::string_view name);  ///< Of C++, in ASCII.
bool is_value_name(std::string_view name);  ///< Of a choice: without spaces, '=' and brackets.

/// What is wrong with a source's name, or nothing: a relative path without "." and "..", so that
/// it stays below the family file.
std::string source_name_fault(std::string_view name);

/// What is wrong with a number as a parameter's value, or nothing.
std::string number_fault(const Parameter& parameter, std::uint64_t value);

/// An expression with `{parameter}` replaced by what `text_of(parameter)` gives.
///
/// Errors:  kInvalidArgument naming what is in braces and is no parameter.
template <class TextOf>
Result<std::string> filled_in(std::string_view expression, const std::vector<Parameter>& parameters,
                              TextOf text_of) {
  std::string out;
  while (!expression.empty()) {
    const std::size_t open = expression.find('{');
    out += expression.substr(0, open);
    if (open == std::string_view::npos) break;
    const std::size_t close = expression.find('}', open);
    const std::string_view name =
        close == std::string_view::npos ? "" : expression.substr(open + 1, close - open - 1);
    const Parameter* found = nullptr;
    for (const Parameter& each : parameters) {
      if (each.name == name) found = &each;
    }
    if (found == nullptr) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{{{}}} is no parameter of the family", name), ""};
    }
    out += text_of(*found);
    expression.remove_prefix(close + 1);
  }
  return out;
}

}  // namespace broach::specializer::own
