#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>

#include "specializer/bounded_json.hpp"
#include "specializer/shape.hpp"

namespace broach::specializer {
namespace {

using Json = nlohmann::json;

template <class T>
struct Named {
  T value;
  std::string_view name;
};

constexpr Named<Dtype> kDtypes[] = {{Dtype::kBf16, "bf16"}, {Dtype::kF16, "f16"}};
constexpr Named<Form> kForms[] = {{Form::kDecode, "decode"}, {Form::kPrefill, "prefill"}};
constexpr Named<Switch> kSwitches[] = {{Switch::kOff, "off"}, {Switch::kOn, "on"}};
constexpr Named<Arith> kAriths[] = {{Arith::kDefault, "default"},
                                    {Arith::kChunk256, "chunk256"},
                                    {Arith::kTile64, "tile64"},
                                    {Arith::kMma32, "mma32"}};
constexpr Named<KvLayoutKind> kLayouts[] = {{KvLayoutKind::kLinear, "linear"},
                                            {KvLayoutKind::kRing, "ring"},
                                            {KvLayoutKind::kPaged, "paged"}};

template <class T, std::size_t n>
constexpr std::string_view find_name(const Named<T> (&table)[n], T value) noexcept {
  for (const Named<T>& row : table) {
    if (row.value == value) return row.name;
  }
  return "unknown";
}

Error bad_value(std::string_view field, std::string_view text, std::string_view works) {
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("window_rows {}={} does not read; {}", field, text, works), ""};
}

template <class T, std::size_t n>
Result<void> read_name(std::string_view field, std::string_view text, const Named<T> (&table)[n],
                       T& into) {
  std::string works;
  for (const Named<T>& row : table) {
    if (row.name == text) {
      into = row.value;
      return {};
    }
    works += fmt::format("{}{}", works.empty() ? "" : ", ", row.name);
  }
  return bad_value(field, text, "one of " + works + " works");
}

Result<void> read_number(std::string_view field, std::string_view text, std::uint32_t& into) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) {
    return bad_value(field, text, "a decimal number below 4294967296 works");
  }
  into = value;
  return {};
}

Result<void> read_layout(std::string_view field, std::string_view text, KvLayout& into) {
  constexpr std::string_view kWorks = "linear, ring(1536) and paged(64) are examples that work";
  KvLayout layout;
  const std::string_view word = text.substr(0, text.find('('));
  if (!read_name(field, word, kLayouts, layout.kind)) return bad_value(field, text, kWorks);
  std::string_view rest = text.substr(word.size());
  if (layout.kind == KvLayoutKind::kLinear) {
    if (!rest.empty()) return bad_value(field, text, kWorks);
  } else {
    if (rest.size() < 3 || !rest.ends_with(')')) return bad_value(field, text, kWorks);
    rest = rest.substr(1, rest.size() - 2);
    if (!read_number(field, rest, layout.length)) return bad_value(field, text, kWorks);
  }
  into = layout;
  return {};
}

std::string print_layout(const KvLayout& layout) {
  if (layout.kind == KvLayoutKind::kLinear) return "linear";
  return fmt::format("{}({})", find_name(kLayouts, layout.kind), layout.length);
}

enum class JsonForm : std::uint8_t { kNumber, kText };

// One row a parameter, in the order of the shape table: everything that reads or prints a shape
// goes through here, so that a new parameter is one new row.
struct Field {
  std::string_view name;
  JsonForm json;
  std::string (*print)(const WindowRowsShape&);
  Result<void> (*read)(std::string_view field, std::string_view text, WindowRowsShape&);
};

template <std::uint32_t WindowRowsShape::*kMember>
Field number(std::string_view name) {
  return {name, JsonForm::kNumber,
          [](const WindowRowsShape& shape) { return std::to_string(shape.*kMember); },
          [](std::string_view field, std::string_view text, WindowRowsShape& shape) {
            return read_number(field, text, shape.*kMember);
          }};
}

template <auto kMember, const auto& kTable>
Field choice(std::string_view name) {
  return {
      name, JsonForm::kText,
      [](const WindowRowsShape& shape) { return std::string(find_name(kTable, shape.*kMember)); },
      [](std::string_view field, std::string_view text, WindowRowsShape& shape) {
        return read_name(field, text, kTable, shape.*kMember);
      }};
}

using Shape = WindowRowsShape;

const std::array kFields{
    number<&Shape::head_dim>("head_dim"),
    number<&Shape::gqa_ratio>("gqa_ratio"),
    number<&Shape::window>("window"),
    Field{"kv_layout", JsonForm::kText,
          [](const Shape& shape) { return print_layout(shape.kv_layout); },
          [](std::string_view field, std::string_view text, Shape& shape) {
            return read_layout(field, text, shape.kv_layout);
          }},
    choice<&Shape::dtype, kDtypes>("dtype"),
    choice<&Shape::p32, kSwitches>("p32"),
    choice<&Shape::softcap, kSwitches>("softcap"),
    choice<&Shape::sinks, kSwitches>("sinks"),
    choice<&Shape::form, kForms>("form"),
    choice<&Shape::arith, kAriths>("arith"),
    choice<&Shape::checked, kSwitches>("checked"),
};

constexpr std::string_view kFamily = "window_rows";

std::string field_names() {
  std::string names;
  for (const Field& field : kFields) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", field.name);
  }
  return names;
}

// Reads one named value into a shape; `seen` refuses a field that comes twice.
Result<void> read_field(std::string_view name, std::string_view text, WindowRowsShape& shape,
                        std::set<std::string, std::less<>>& seen) {
  const auto field = std::find_if(kFields.begin(), kFields.end(),
                                  [&](const Field& each) { return each.name == name; });
  if (field == kFields.end()) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("window_rows has no field \"{}\"; it has {}", name, field_names()),
                 ""};
  }
  if (!seen.insert(std::string(name)).second) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("window_rows {} is given twice, the second time as \"{}\"", name, text), ""};
  }
  return field->read(name, text, shape);
}

Result<std::string> text_of(std::string_view name, const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_unsigned()) return std::to_string(value.get<std::uint64_t>());
  if (value.is_boolean()) return std::string(value.get<bool>() ? "on" : "off");
  return bad_value(name, value.dump(-1, ' ', true, Json::error_handler_t::replace),
                   "a string, a whole number or true/false works");
}

}  // namespace

std::string_view name_of(Dtype dtype) noexcept { return find_name(kDtypes, dtype); }
std::string_view name_of(Form form) noexcept { return find_name(kForms, form); }
std::string_view name_of(Arith arith) noexcept { return find_name(kAriths, arith); }
std::string_view name_of(KvLayoutKind kind) noexcept { return find_name(kLayouts, kind); }

std::vector<ShapeParameter> parameters(const WindowRowsShape& shape) {
  std::vector<ShapeParameter> out;
  out.reserve(kFields.size());
  for (const Field& field : kFields) out.push_back({std::string(field.name), field.print(shape)});
  return out;
}

std::string to_json(const WindowRowsShape& shape) {
  Json json{{"family", kFamily}};
  for (const Field& field : kFields) {
    const std::string text = field.print(shape);
    if (field.json == JsonForm::kNumber) {
      json[std::string(field.name)] = Json::parse(text);
    } else {
      json[std::string(field.name)] = text;
    }
  }
  return json.dump();
}

std::string to_words(const WindowRowsShape& shape) {
  std::string words(kFamily);
  for (const Field& field : kFields) {
    words += fmt::format(" {}={}", field.name, field.print(shape));
  }
  return words;
}

Result<WindowRowsShape> parse_window_rows(const std::vector<std::string>& words) {
  WindowRowsShape shape;
  std::set<std::string, std::less<>> seen;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (i == 0 && word == kFamily) continue;
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos) {
      return Error{
          ErrorCode::kInvalidArgument,
          fmt::format("shape word \"{}\" is not name=value; the names are {}", word, field_names()),
          ""};
    }
    auto read = read_field(word.substr(0, equals), word.substr(equals + 1), shape, seen);
    if (!read) return read.error();
  }
  return shape;
}

Result<WindowRowsShape> window_rows_from_json(std::string_view text) {
  try {
    const auto parsed = parse_json<Json>(text);
    if (!parsed) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("a window_rows shape: {}", parsed.error().message), ""};
    }
    const Json& json = *parsed;
    if (!json.is_object()) {
      return Error{ErrorCode::kInvalidArgument, "a window_rows shape must be a JSON object", ""};
    }
    WindowRowsShape shape;
    std::set<std::string, std::less<>> seen;
    for (const auto& [name, value] : json.items()) {
      auto word = text_of(name, value);
      if (!word) return word.error();
      if (name == "family") {
        if (*word == kFamily) continue;
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("family \"{}\" is not {}", *word, kFamily), ""};
      }
      auto read = read_field(name, *word, shape, seen);
      if (!read) return read.error();
    }
    return shape;
  } catch (const Json::exception& fault) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("a window_rows shape does not read: {}", fault.what()), ""};
  }
}

}  // namespace broach::specializer
