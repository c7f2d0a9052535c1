#include "specializer/field.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace broach::specializer {
namespace {

std::string what_works(const Field& field) {
  if (field.kind == FieldKind::kNumber) return "a decimal number below 4294967296 works";
  std::string works;
  for (const Choice& choice : field.choices) {
    works += fmt::format("{}{}{}", works.empty() ? "" : ", ", choice.name,
                         choice.takes_number == TakesNumber::kYes ? "(N)" : "");
  }
  return "one of " + works + " works";
}

std::optional<std::uint32_t> read_number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return {};
  return value;
}

std::optional<std::uint32_t> find_choice(const Field& field, std::string_view name) {
  for (const Alias& alias : field.aliases) {
    if (alias.name == name) name = alias.stands_for;
  }
  for (std::size_t i = 0; i < field.choices.size(); ++i) {
    if (field.choices[i].name == name) return static_cast<std::uint32_t>(i);
  }
  return {};
}

std::optional<std::uint64_t> read_choice_with_number(const Field& field, std::string_view text) {
  const std::string_view name = text.substr(0, text.find('('));
  const auto choice = find_choice(field, name);
  if (!choice) return {};
  std::string_view rest = text.substr(name.size());
  if (field.choices[*choice].takes_number == TakesNumber::kNo) {
    return rest.empty() ? std::optional(choice_value(*choice, 0)) : std::nullopt;
  }
  if (rest.size() < 3 || !rest.ends_with(')')) return {};
  const auto number = read_number(rest.substr(1, rest.size() - 2));
  return number ? std::optional(choice_value(*choice, *number)) : std::nullopt;
}

}  // namespace

std::string value_text(const Field& field, std::uint64_t value) {
  if (field.kind == FieldKind::kNumber) return std::to_string(value);
  const bool numbered = field.kind == FieldKind::kChoiceWithNumber;
  const std::uint64_t index = numbered ? choice_of(value) : value;
  if (index >= field.choices.size()) return "unknown";
  const Choice& choice = field.choices[static_cast<std::size_t>(index)];
  if (choice.takes_number == TakesNumber::kNo) return std::string(choice.name);
  return fmt::format("{}({})", choice.name, number_of(value));
}

Result<std::uint64_t> read_value(std::string_view family, const Field& field,
                                 std::string_view text) {
  std::optional<std::uint64_t> value;
  switch (field.kind) {
    case FieldKind::kNumber:
      value = read_number(text);
      break;
    case FieldKind::kChoice:
      value = find_choice(field, text);
      break;
    case FieldKind::kChoiceWithNumber:
      value = read_choice_with_number(field, text);
      break;
  }
  if (value) return *value;
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format("{} {}={} does not read; {}", family, field.name, text, what_works(field)), ""};
}

}  // namespace broach::specializer
