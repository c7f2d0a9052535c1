#include "tools/broach/shape_argument.hpp"

#include <fmt/core.h>

#include <sstream>

namespace broach::tool {
namespace {

using specializer::Family;
using specializer::Field;
using specializer::FieldKind;

constexpr std::size_t kLineWidth = 92;

// "kv_layout=linear|ring(N)|paged(N)"; what is there by default comes first.
std::string field_help(const Field& field) {
  if (field.kind == FieldKind::kNumber) return fmt::format("{}=N", field.name);
  std::string values;
  for (const specializer::Choice& choice : field.choices) {
    values += fmt::format("{}{}{}", values.empty() ? "" : "|", choice.name,
                          choice.takes_number == specializer::TakesNumber::kYes ? "(N)" : "");
  }
  return fmt::format("{}={}", field.name, values);
}

std::string family_help(const Family& family) {
  std::string text, line = fmt::format("  {}", family.name());
  for (const Field& field : family.fields()) {
    const std::string item = field_help(field);
    if (line.size() + 1 + item.size() > kLineWidth) {
      text += line + '\n';
      line = "   ";
    }
    line += ' ' + item;
  }
  return text + line + '\n';
}

std::string family_names(const specializer::FamilySet& families) {
  std::string names;
  for (const Family* family : families.all()) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", family->name());
  }
  return names;
}

}  // namespace

Result<ShapeArgument> split_shape(const std::vector<std::string>& arguments,
                                  const specializer::FamilySet& families) {
  std::vector<std::string> items;
  for (const std::string& argument : arguments) {
    std::istringstream stream(argument);
    for (std::string item; stream >> item;) items.push_back(item);
  }
  if (items.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("no shape; one is a family ({}) and name=value for its fields, such "
                             "as head_dim=256",
                             family_names(families)),
                 ""};
  }
  auto family = families.named(items.front());
  if (!family) return family.error();
  items.erase(items.begin());
  return ShapeArgument{*family, std::move(items)};
}

Result<specializer::Shape> parse_shape(const std::vector<std::string>& arguments,
                                       const specializer::FamilySet& families) {
  auto argument = split_shape(arguments, families);
  if (!argument) return argument.error();
  return specializer::parse_shape(*argument->family, argument->items);
}

std::string shape_help() {
  std::string text =
      "A shape is a family and name=value for its fields, as several arguments or one quoted\n"
      "string; a field may be left out where its default, the first value, is meant:\n";
  for (const Family* family : specializer::families()) text += family_help(*family);
  text.pop_back();
  return text;
}

}  // namespace broach::tool
