#include "specializer/own/description.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "specializer/bounded_json.hpp"
#include "specializer/own/json_reader.hpp"
#include "specializer/own/names.hpp"
#include "specializer/shape.hpp"

namespace broach::specializer::own {
namespace {

using Json = JsonReader::Json;

constexpr std::uint32_t kFormat = 1;
constexpr std::size_t kMaxSources = 4096;
constexpr std::size_t kMaxFunctions = 64;
constexpr std::size_t kMaxValues = 1024;
constexpr std::size_t kMaxPacks = 16;
constexpr std::size_t kMaxTargets = 64;
constexpr std::uint32_t kMaxBlock = 1024;
constexpr std::uint32_t kMaxShared = 1U << 20;

class DescriptionReader {
 public:
  DescriptionReader(std::string_view file, std::string_view text) : json_(file, text) {}

  Result<Description> read(const Json& json) {
    if (json_.object_of(json, {"family", "name", "parameters", "sources", "main", "packs",
                               "functions", "targets", "options", "refuse", "notes"})) {
      read_members(json);
    }
    if (json_.failed()) return *json_.fault();
    return std::move(into_);
  }

 private:
  void read_members(const Json& json) {
    json_.required(json, "family", "it is the format's version, 1", [&](const Json& value) {
      if (json_.number(value) != kFormat) {
        json_.refuse(
            fmt::format("version {} is not known here; {} is", JsonReader::shown(value), kFormat));
      }
    });
    json_.required(json, "name", "vendor.family, such as \"acme.rms_norm\"",
                   [&](const Json& value) {
                     into_.name = json_.text(value);
                     if (!is_family_name(into_.name)) json_.refuse(family_name_fault(into_.name));
                   });
    json_.required(json, "sources", "the files that kernels are made of", [&](const Json& value) {
      json_.array(value, kMaxSources, [&](const Json& each) { read_source(each); });
    });
    into_.main = into_.sources.empty() ? "" : into_.sources.front();
    json_.member(json, "main", [&](const Json& value) { read_main(value); });
    json_.member(json, "parameters", [&](const Json& value) {
      if (value.is_array() && value.empty()) return;
      json_.array(value, kMaxFields, [&](const Json& each) { read_parameter(each); });
    });
    json_.member(json, "packs", [&](const Json& value) {
      json_.array(value, kMaxPacks, [&](const Json& each) { read_pack(each); });
    });
    json_.required(json, "functions", "the names of the kernels", [&](const Json& value) {
      json_.array(value, kMaxFunctions, [&](const Json& each) { read_function(each); });
    });
    json_.required(json, "targets", "such as [\"sm_80+\", \"gfx90a+\", \"host\"]",
                   [&](const Json& value) {
                     json_.array(value, kMaxTargets, [&](const Json& each) { read_target(each); });
                   });
    json_.member(json, "options", [&](const Json& value) { read_options(value); });
    json_.member(json, "refuse", [&](const Json& value) {
      json_.array(value, 2, [&](const Json& each) { read_refusal(each); });
    });
    json_.member(json, "notes", [&](const Json& value) { json_.text(value); });
    if (!json_.failed()) check_uses();
    if (!json_.failed()) check_options();
  }

  void read_source(const Json& json) {
    std::string name = json_.text(json);
    if (json_.failed()) return;
    if (const std::string fault = source_name_fault(name); !fault.empty()) json_.refuse(fault);
    if (std::find(into_.sources.begin(), into_.sources.end(), name) != into_.sources.end()) {
      json_.refuse(fmt::format("\"{}\" is listed twice", name));
    }
    into_.sources.push_back(std::move(name));
  }

  void read_main(const Json& json) {
    into_.main = json_.text(json);
    if (std::find(into_.sources.begin(), into_.sources.end(), into_.main) == into_.sources.end()) {
      json_.refuse(fmt::format("\"{}\" is not among the sources: {}", into_.main,
                               fmt::join(into_.sources, ", ")));
    }
  }

  void read_parameter(const Json& json) {
    Parameter parameter;
    if (!json_.object_of(json, {"name", "type", "range", "multiple_of", "values", "default",
                                "constant", "macro", "notes"})) {
      return;
    }
    json_.required(json, "name", "as it is written in name=value", [&](const Json& value) {
      parameter.name = json_.text(value);
      if (!is_identifier(parameter.name) || parameter.name == "family") {
        json_.refuse(
            fmt::format("\"{}\" does not work; a letter, then letters, digits and "
                        "underscores do, but not \"family\"",
                        parameter.name));
      }
      const auto same = [&](const Parameter& each) { return each.name == parameter.name; };
      if (std::any_of(into_.parameters.begin(), into_.parameters.end(), same)) {
        json_.refuse(fmt::format("\"{}\" is the name of two parameters", parameter.name));
      }
    });
    std::string type;
    json_.required(json, "type", "int, enum or bool",
                   [&](const Json& value) { type = json_.text(value); });
    if (json_.failed()) return;
    if (type == "int") {
      read_int(json, parameter);
    } else if (type == "enum") {
      read_enum(json, parameter);
    } else if (type == "bool") {
      read_bool(json, parameter);
    } else {
      json_.at("type", [&] {
        json_.refuse(fmt::format("\"{}\" does not work; int, enum and bool do", type));
      });
    }
    read_identifier(json, "constant", parameter.constant);
    read_identifier(json, "macro", parameter.macro);
    into_.parameters.push_back(std::move(parameter));
  }

  /// Members that another type of parameter has are refused by name.
  void only(const Json& json, std::string_view type, std::initializer_list<const char*> others) {
    for (const char* const name : others) {
      json_.member(json, name,
                   [&](const Json&) { json_.refuse(fmt::format("an {} has none", type)); });
    }
  }

  void read_int(const Json& json, Parameter& into) {
    json_.member(json, "range", [&](const Json& value) {
      if (!value.is_array() || value.size() != 2) {
        return json_.refuse(
            fmt::format("{} does not work; [least, most] does", JsonReader::shown(value)));
      }
      into.least = json_.number(value[0]);
      into.most = json_.number(value[1], into.least);
    });
    json_.member(json, "multiple_of",
                 [&](const Json& value) { into.multiple_of = json_.number(value, 1); });
    json_.member(json, "values", [&](const Json& value) {
      json_.array(value, kMaxValues, [&](const Json& each) {
        into.listed.push_back(json_.number(each, into.least, into.most));
      });
    });
    json_.member(json, "default", [&](const Json& value) {
      into.default_value = json_.number(value, into.least, into.most);
      const std::string fault = number_fault(into, into.default_value);
      if (!fault.empty()) json_.refuse(fault);
    });
  }

  void read_enum(const Json& json, Parameter& into) {
    only(json, "enum", {"range", "multiple_of"});
    json_.required(
        json, "values", "names, or an object of names and C++ text", [&](const Json& value) {
          if (value.is_object()) {
            read_coded_values(value, into);
          } else {
            json_.array(value, kMaxValues,
                        [&](const Json& each) { add_value(into, json_.text(each), ""); });
          }
        });
    read_choice_default(json, into);
  }

  // An object's members have no order: the source is given positions in that of their names.
  void read_coded_values(const Json& json, Parameter& into) {
    if (json.empty()) return json_.refuse("the object is empty; one value at least works");
    if (json.size() > kMaxValues) return json_.refuse("there are too many values");
    for (const auto& item : json.items()) {
      json_.at(item.key(), [&] { add_value(into, item.key(), json_.text(item.value())); });
    }
  }

  void add_value(Parameter& into, std::string name, std::string code) {
    if (json_.failed()) return;
    if (!is_value_name(name)) {
      return json_.refuse(
          fmt::format("\"{}\" does not work; letters, digits, '_', '-' and '.' do", name));
    }
    const auto same = [&](const Value& each) { return each.name == name; };
    if (std::any_of(into.values.begin(), into.values.end(), same)) {
      return json_.refuse(fmt::format("\"{}\" is listed twice", name));
    }
    into.values.push_back({std::move(name), std::move(code)});
  }

  void read_bool(const Json& json, Parameter& into) {
    only(json, "bool", {"range", "multiple_of", "values"});
    into.values = {{"off", "0"}, {"on", "1"}};
    json_.member(json, "default",
                 [&](const Json& value) { into.default_value = json_.boolean(value) ? 1 : 0; });
  }

  void read_choice_default(const Json& json, Parameter& into) {
    json_.member(json, "default", [&](const Json& value) {
      const std::string name = json_.text(value);
      const auto found = std::find_if(into.values.begin(), into.values.end(),
                                      [&](const Value& each) { return each.name == name; });
      if (found == into.values.end()) {
        return json_.refuse(fmt::format("\"{}\" is not among the values", name));
      }
      into.default_value = static_cast<std::uint32_t>(found - into.values.begin());
    });
  }

  void read_identifier(const Json& json, const char* member, std::string& into) {
    json_.member(json, member, [&](const Json& value) {
      into = json_.text(value);
      if (!is_identifier(into)) {
        json_.refuse(fmt::format("\"{}\" is no C++ identifier", into));
      }
    });
  }

  void read_pack(const Json& json) {
    Pack pack;
    if (json.is_string()) {
      pack.name = json_.text(json);
      if (pack.name != "cuda" && pack.name != "hip") {
        json_.refuse(
            fmt::format("\"{}\" is no toolkit's; cuda and hip are, and a tree of your own "
                        "is {{\"name\": …, \"root\": …}}",
                        pack.name));
      }
    } else if (json_.object_of(json, {"name", "root"})) {
      json_.required(json, "name", "for messages",
                     [&](const Json& value) { pack.name = json_.text(value); });
      json_.required(json, "root", "the directory that includes begin at",
                     [&](const Json& value) { pack.root = json_.text(value); });
    }
    const auto same = [&](const Pack& each) { return each.name == pack.name; };
    if (std::any_of(into_.packs.begin(), into_.packs.end(), same)) {
      json_.refuse(fmt::format("\"{}\" is the name of two packs", pack.name));
    }
    into_.packs.push_back(std::move(pack));
  }

  void read_function(const Json& json) {
    Function function;
    if (json.is_string()) {
      function.name = json_.text(json);
    } else if (json_.object_of(json,
                               {"name", "expression", "block", "dynamic_shared", "cluster"})) {
      json_.required(json, "name", "by which it is launched",
                     [&](const Json& value) { function.name = json_.text(value); });
      json_.member(json, "expression",
                   [&](const Json& value) { function.expression = json_.text(value); });
      json_.member(json, "block",
                   [&](const Json& value) { function.block = read_dims(value, kMaxBlock); });
      json_.member(json, "dynamic_shared", [&](const Json& value) {
        function.dynamic_shared = json_.number(value, 0, kMaxShared);
      });
      json_.member(json, "cluster",
                   [&](const Json& value) { function.cluster = read_dims(value, 16); });
    }
    if (json_.failed()) return;
    if (!is_identifier(function.name)) {
      return json_.refuse(
          fmt::format("\"{}\" is no C++ identifier; a template's instance is an \"expression\"",
                      function.name));
    }
    const auto same = [&](const Function& each) { return each.name == function.name; };
    if (std::any_of(into_.functions.begin(), into_.functions.end(), same)) {
      return json_.refuse(fmt::format("\"{}\" is the name of two functions", function.name));
    }
    into_.functions.push_back(std::move(function));
  }

  /// 256, [256] or [16, 16, 2]: 1 to `most` in all.
  std::array<std::uint32_t, 3> read_dims(const Json& json, std::uint32_t most) {
    std::array<std::uint32_t, 3> dims{1, 1, 1};
    if (!json.is_array()) {
      dims[0] = json_.number(json, 1, most);
      return dims;
    }
    std::size_t at = 0;
    json_.array(json, dims.size(),
                [&](const Json& each) { dims[at++] = json_.number(each, 1, most); });
    if (dims[0] * dims[1] * dims[2] > most) {
      json_.refuse(fmt::format("{} in all; {} at most work", dims[0] * dims[1] * dims[2], most));
    }
    return dims;
  }

  void read_target(const Json& json) {
    const std::string text = json_.text(json);
    if (json_.failed()) return;
    auto rule = TargetRule::read(text);
    if (!rule) return json_.refuse(rule.error().message);
    into_.targets.push_back(*std::move(rule));
  }

  void read_options(const Json& json) {
    if (!json_.object_of(json, {"nvidia", "amd", "host"})) return;
    json_.member(json, "nvidia", [&](const Json& each) { read_options(each, Vendor::kNvidia); });
    json_.member(json, "amd", [&](const Json& each) { read_options(each, Vendor::kAmd); });
    json_.member(json, "host", [&](const Json& each) { read_options(each, Vendor::kHost); });
  }

  void read_options(const Json& json, Vendor vendor) {
    if (!json.is_object()) {
      return json_.refuse(fmt::format("{} is no object of options", JsonReader::shown(json)));
    }
    FamilyOptions& into = into_.options[static_cast<std::size_t>(vendor)];
    for (const auto& item : json.items()) {
      json_.at(item.key(), [&] {
        const auto read = option_value(item.value());
        if (!read) return;
        if (auto set = set_option(into, vendor, item.key(), *read); !set) {
          json_.refuse(set.error().message);
        }
      });
    }
  }

  std::optional<OptionValue> option_value(const Json& json) {
    if (json.is_boolean()) return json.get<bool>();
    if (json.is_number_unsigned()) return json.get<std::uint64_t>();
    if (json.is_string()) return json_.text(json);
    json_.refuse(
        fmt::format("{} is no value of an option; true, false, a whole number and a text "
                    "are",
                    JsonReader::shown(json)));
    return std::nullopt;
  }

  void read_refusal(const Json& json) {
    const std::string text = json_.text(json);
    if (text == "spills") {
      into_.refuse.spills = true;
    } else if (text == "local_memory") {
      into_.refuse.local_memory = true;
    } else {
      json_.refuse(fmt::format("\"{}\" does not work; spills and local_memory do", text));
    }
  }

  // A parameter that reaches neither the source nor an expression would make a binary a value, all
  // the same.
  void check_uses() {
    for (std::size_t i = 0; i < into_.parameters.size(); ++i) {
      const Parameter& parameter = into_.parameters[i];
      const std::string braced = "{" + parameter.name + "}";
      const bool is_used =
          !parameter.constant.empty() || !parameter.macro.empty() ||
          std::any_of(into_.functions.begin(), into_.functions.end(), [&](const Function& each) {
            return each.expression.find(braced) != std::string::npos;
          });
      if (is_used) continue;
      json_.at("parameters", [&] {
        json_.at(i, [&] {
          json_.refuse(
              fmt::format("{} changes nothing: give it a \"constant\" or a \"macro\", or "
                          "use {} in a function's \"expression\"",
                          parameter.name, braced));
        });
      });
      return;
    }
    check_expressions();
    check_definitions();
  }

  // Options that contradict each other are found when they are put together.
  void check_options() {
    for (const TargetRule& rule : into_.targets) {
      auto target = parse_target(rule.text.substr(0, rule.text.find('+')));
      if (!target) continue;
      const auto options = compiler_options(*target, into_.options_of(rule.vendor));
      if (!options) json_.at("options", [&] { json_.refuse(options.error().message); });
    }
  }

  void check_expressions() {
    for (std::size_t i = 0; i < into_.functions.size(); ++i) {
      const auto filled = filled_in(into_.functions[i].expression, into_.parameters,
                                    [](const Parameter&) { return std::string("1"); });
      if (filled) continue;
      json_.at("functions", [&] {
        json_.at(i, [&] { json_.at("expression", [&] { json_.refuse(filled.error().message); }); });
      });
    }
  }

  void check_definitions() {
    std::set<std::string> seen;
    for (const Parameter& parameter : into_.parameters) {
      for (const std::string* name : {&parameter.constant, &parameter.macro}) {
        if (name->empty() || seen.insert(*name).second) continue;
        json_.refuse(fmt::format("\"{}\" is defined by two parameters", *name));
      }
    }
  }

  JsonReader json_;
  Description into_;
};

}  // namespace

Result<Description> read_description(std::string_view file, std::string_view text) {
  auto json = parse_json<Json>(text);
  if (!json) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("{}: {}", file, json.error().message),
                 ""};
  }
  return DescriptionReader(file, text).read(*json);
}

}  // namespace broach::specializer::own
