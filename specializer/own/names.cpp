#include "specializer/own/names.hpp"

#include <algorithm>

namespace broach::specializer::own {
namespace {

constexpr std::size_t kMaxNameBytes = 100;

constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_name_part(std::string_view part) {
  return !part.empty() && part.front() >= 'a' && part.front() <= 'z' &&
         std::all_of(part.begin(), part.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || is_digit(c) || c == '_'; });
}

/// Calls `take(part)` for each part between separators, until one returns false.
template <class Take>
bool each_part(std::string_view text, char separator, Take take) {
  for (;;) {
    const std::size_t end = text.find(separator);
    if (!take(text.substr(0, end))) return false;
    if (end == std::string_view::npos) return true;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

bool is_family_name(std::string_view name) {
  return name.size() <= kMaxNameBytes && name.find('.') != std::string_view::npos &&
         each_part(name, '.', is_name_part);
}

std::string family_name_fault(std::string_view name) {
  return fmt::format(
      "\"{}\" does not work; vendor.family does, of lower-case letters, digits and underscores, "
      "such as \"acme.rms_norm\", in {} bytes",
      name, kMaxNameBytes);
}

bool is_identifier(std::string_view name) {
  return !name.empty() && name.size() <= kMaxNameBytes && !is_digit(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return is_letter(c) || is_digit(c) || c == '_'; });
}

bool is_value_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxNameBytes &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return is_letter(c) || is_digit(c) || c == '_' || c == '-' || c == '.';
         });
}

std::string source_name_fault(std::string_view name) {
  if (name == kGeneratedMain) {
    return fmt::format("\"{}\" is the name of the source that broach writes", name);
  }
  const bool stays_below = each_part(name, '/', [](std::string_view part) {
    return !part.empty() && part != "." && part != "..";
  });
  const bool is_plain = std::all_of(name.begin(), name.end(), [](char c) {
    return is_letter(c) || is_digit(c) ||
           std::string_view("/._-+").find(c) != std::string_view::npos;
  });
  if (stays_below && is_plain) return {};
  return fmt::format(
      "\"{}\" does not work; a path relative to the family file does, without \".\" and \"..\", of "
      "letters, digits, and . _ - +",
      name);
}

std::string number_fault(const Parameter& parameter, std::uint64_t value) {
  if (!parameter.listed.empty()) {
    if (std::find(parameter.listed.begin(), parameter.listed.end(), value) !=
        parameter.listed.end()) {
      return {};
    }
    std::string listed;
    for (const std::uint32_t each : parameter.listed) {
      listed += (listed.empty() ? "" : ", ") + std::to_string(each);
    }
    return fmt::format("{} is not served; {} {}", value, listed,
                       parameter.listed.size() == 1 ? "is" : "are");
  }
  if (value >= parameter.least && value <= parameter.most && value % parameter.multiple_of == 0) {
    return {};
  }
  return fmt::format("{} is not served; {}from {} to {} are", value,
                     parameter.multiple_of == 1
                         ? "numbers "
                         : fmt::format("multiples of {} ", parameter.multiple_of),
                     parameter.least, parameter.most);
}

}  // namespace broach::specializer::own
