#include <fmt/core.h>

#include <algorithm>
#include <bitset>
#include <nlohmann/json.hpp>

#include "specializer/bounded_json.hpp"
#include "specializer/family.hpp"
#include "specializer/shape.hpp"
#include "specializer/shape_json.hpp"

namespace broach::specializer {
namespace {

using Json = nlohmann::json;

std::string field_names(const Family& family) {
  std::string names;
  for (const Field& field : family.fields()) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", field.name);
  }
  return names;
}

// Puts named values into a shape; a field that comes twice is refused.
class ShapeReader {
 public:
  explicit ShapeReader(const Family& family) : family_(family), shape_(family) {}

  Result<void> read(std::string_view name, std::string_view text) {
    const auto fields = family_.fields();
    const auto field = std::find_if(fields.begin(), fields.end(),
                                    [&](const Field& each) { return each.name == name; });
    if (field == fields.end()) {
      return refused(fmt::format("{} has no field \"{}\"; it has {}", family_.name(), name,
                                 field_names(family_)));
    }
    const auto at = static_cast<std::size_t>(field - fields.begin());
    if (seen_.test(at)) {
      return refused(fmt::format("{} {} is given twice, the second time as \"{}\"", family_.name(),
                                 name, text));
    }
    seen_.set(at);
    auto value = read_value(family_.name(), *field, text);
    if (!value) return value.error();
    shape_.set(at, *value);
    return {};
  }

  Error refused(std::string message) const {
    return Error{ErrorCode::kInvalidArgument, std::move(message), ""};
  }

  const Shape& shape() const { return shape_; }

 private:
  const Family& family_;
  Shape shape_;
  std::bitset<kMaxFields> seen_;
};

Result<std::string> text_of(const Family& family, std::string_view name, const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_unsigned()) return std::to_string(value.get<std::uint64_t>());
  if (value.is_boolean()) return std::string(value.get<bool>() ? "on" : "off");
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format("{} {}={} does not read; a string, a whole number or true/false works",
                  family.name(), name, value.dump(-1, ' ', true, Json::error_handler_t::replace)),
      ""};
}

}  // namespace

std::vector<ShapeParameter> parameters(const Shape& shape) {
  const auto fields = shape.family().fields();
  std::vector<ShapeParameter> out;
  out.reserve(fields.size());
  for (std::size_t i = 0; i < fields.size(); ++i) {
    out.push_back({std::string(fields[i].name), value_text(fields[i], shape[i])});
  }
  return out;
}

JsonObject json_members(const Shape& shape) {
  const auto fields = shape.family().fields();
  JsonObject members;
  members.set("family", shape.family().name());
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].kind == FieldKind::kNumber) {
      members.set(fields[i].name, shape[i]);
    } else {
      members.set(fields[i].name, value_text(fields[i], shape[i]));
    }
  }
  return members;
}

std::string to_json(const Shape& shape) { return json_members(shape).text(); }

std::string to_text(const Shape& shape) {
  std::string text(shape.family().name());
  for (const ShapeParameter& parameter : parameters(shape)) {
    text += fmt::format(" {}={}", parameter.name, parameter.value);
  }
  return text;
}

Result<Shape> parse_shape(const Family& family, std::span<const std::string> items) {
  ShapeReader reader(family);
  for (const std::string_view item : items) {
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos) {
      return reader.refused(fmt::format("\"{}\" is not name=value; the names of {} are {}", item,
                                        family.name(), field_names(family)));
    }
    auto read = reader.read(item.substr(0, equals), item.substr(equals + 1));
    if (!read) return read.error();
  }
  return reader.shape();
}

Result<Shape> shape_from_json(const Family& family, const Json& json) {
  ShapeReader reader(family);
  if (!json.is_object()) {
    return reader.refused(fmt::format("a {} shape must be a JSON object", family.name()));
  }
  for (const auto& [name, value] : json.items()) {
    auto text = text_of(family, name, value);
    if (!text) return text.error();
    if (name == "family") {
      if (*text == family.name()) continue;
      return reader.refused(fmt::format("family \"{}\" is not {}", *text, family.name()));
    }
    auto read = reader.read(name, *text);
    if (!read) return read.error();
  }
  return reader.shape();
}

Result<Shape> shape_from_json(const Family& family, std::string_view text) {
  const auto json = parse_json<Json>(text);
  if (json) return shape_from_json(family, *json);
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("a {} shape: {}", family.name(), json.error().message), ""};
}

}  // namespace broach::specializer
