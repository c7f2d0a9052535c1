#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace broach::specializer::own {

/// One step into a JSON value: a member's name, or an element's number.
struct JsonStep {
  JsonStep(std::string member) : name(std::move(member)) {}
  JsonStep(const char* member) : name(member) {}
  JsonStep(std::size_t element) noexcept : index(element), is_member(false) {}

  std::string name;
  std::size_t index = 0;
  bool is_member = true;
};

/// The line, from 1, on which a value of a JSON text begins; that of the deepest part that exists.
///
/// `text` has been parsed before; on anything else the line is some line of it.
std::size_t line_of(std::string_view text, std::span<const JsonStep> path);

/// "parameters[0].range"
std::string path_text(std::span<const JsonStep> path);

}  // namespace broach::specializer::own
