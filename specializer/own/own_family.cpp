#include "specializer/own/own_family.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "cache/key.hpp"
#include "specializer/own/names.hpp"
#include "specializer/own/toolkit_packs.hpp"

namespace broach::specializer::own {
namespace {

/// A value as the source has it: a number, or a choice's position.
std::string constant_text(std::uint64_t value) { return std::to_string(value); }

/// A value as a macro or an expression has it: a number, or a choice's C++ text or name.
std::string code_text(const Parameter& parameter, std::uint64_t value) {
  if (!parameter.is_choice()) return std::to_string(value);
  const Value& choice = parameter.values[static_cast<std::size_t>(value)];
  return choice.code.empty() ? choice.name : choice.code;
}

/// A choice's name as part of a C++ identifier.
std::string as_identifier(std::string text) {
  for (char& c : text) {
    if (c == '-' || c == '.') c = '_';
  }
  return text;
}

/// `constexpr int kDtype_bf16 = 0;` for each value of a choice, then the constant itself.
std::string definitions_of(const Parameter& parameter, std::uint64_t value) {
  std::string out;
  if (!parameter.constant.empty()) {
    for (std::size_t i = 0; i < parameter.values.size(); ++i) {
      out += fmt::format("constexpr int {}_{} = {};\n", parameter.constant,
                         as_identifier(parameter.values[i].name), i);
    }
    // A number above INT_MAX takes the type that holds it.
    out += fmt::format("constexpr {} {} = {}{};\n", value > INT32_MAX ? "unsigned" : "int",
                       parameter.constant, constant_text(value), value > INT32_MAX ? "u" : "");
  }
  if (!parameter.macro.empty()) {
    out += fmt::format("#define {} {}\n", parameter.macro, code_text(parameter, value));
  }
  return out;
}

/// The packs that a description names, each where it lies.
Result<std::vector<DeclaredPack>> declared_packs(const Description& description,
                                                 const Places& places) {
  std::vector<DeclaredPack> packs;
  for (const Pack& pack : description.packs) {
    if (const auto vendor = vendor_of_toolkit_pack(pack.name); vendor && pack.root.empty()) {
      packs.push_back({toolkit_pack(*vendor, places.toolkits), vendor});
      continue;
    }
    const std::filesystem::path root(pack.root);
    if (root.is_relative() && places.directory.empty()) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{}: pack \"{}\" has the relative root {}, and a family from memory "
                               "lies nowhere; an absolute root works",
                               description.name, pack.name, pack.root),
                   ""};
    }
    packs.push_back(
        {HeaderPack::of_directories(pack.name, {(places.directory / root).lexically_normal()}),
         std::nullopt});
  }
  return packs;
}

std::string digest_of(std::string_view text, const std::vector<SourceFile>& sources) {
  cache::KeyBuilder digest;
  digest.field("family.file", text);
  for (const SourceFile& source : sources) {
    digest.field("source.name", source.name).field("source.bytes", source.bytes);
  }
  return digest.finish().key.hex();
}

}  // namespace

Result<std::shared_ptr<const OwnFamily>> OwnFamily::make(std::string_view origin,
                                                         std::string_view text,
                                                         std::vector<SourceFile> sources,
                                                         const Places& places) {
  auto description = read_description(origin, text);
  if (!description) return description.error();
  return make(origin, text, *std::move(description), std::move(sources), places);
}

Result<std::shared_ptr<const OwnFamily>> OwnFamily::make(std::string_view origin,
                                                         std::string_view text,
                                                         Description description,
                                                         std::vector<SourceFile> sources,
                                                         const Places& places) {
  std::shared_ptr<OwnFamily> family(new OwnFamily);
  for (const std::string& name : description.sources) {
    const auto found = std::find_if(sources.begin(), sources.end(),
                                    [&](const SourceFile& each) { return each.name == name; });
    if (found == sources.end()) {
      return Error{
          ErrorCode::kInvalidArgument,
          fmt::format("{}: source \"{}\" of {} was not given", origin, name, description.name), ""};
    }
    family->sources_.push_back(std::move(*found));
  }
  family->description_ = std::move(description);
  family->text_ = text;
  family->origin_ = origin;
  family->digest_ = digest_of(text, family->sources_);
  family->make_fields();
  auto packs = declared_packs(family->description_, places);
  if (!packs) return packs.error();
  family->files_ = std::make_unique<const FamilyFiles>(family->description_.name, family->sources_,
                                                       *std::move(packs));
  return std::shared_ptr<const OwnFamily>(std::move(family));
}

void OwnFamily::make_fields() {
  for (const Parameter& parameter : description_.parameters) {
    Field field;
    field.name = parameter.name;
    field.default_value = parameter.default_value;
    if (parameter.is_choice()) {
      auto& choices = choices_.emplace_back();
      for (const Value& value : parameter.values) choices.push_back({value.name});
      field.kind = FieldKind::kChoice;
      field.choices = choices;
    }
    fields_.push_back(field);
  }
}

Result<void> OwnFamily::check_ranges(const Shape& shape) const {
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    const Parameter& parameter = description_.parameters[i];
    if (parameter.is_choice()) continue;
    const std::string fault = number_fault(parameter, shape[i]);
    if (fault.empty()) continue;
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} {}={}", name(), parameter.name, fault), ""};
  }
  return {};
}

Result<ServedShape> OwnFamily::serve(const Shape& shape, const Target& target) const {
  if (auto ranged = check_ranges(shape); !ranged) return ranged.error();
  const auto& rules = description_.targets;
  if (std::any_of(rules.begin(), rules.end(),
                  [&](const TargetRule& rule) { return rule.takes(target); })) {
    return served(shape, target);
  }
  std::string listed;
  for (const TargetRule& rule : rules) listed += (listed.empty() ? "" : ", ") + rule.text;
  return Error{ErrorCode::kUnsupported,
               fmt::format("{} is not for {}; its \"targets\" are {}", name(), target.name, listed),
               "", Reason::kNoKernel};
}

Result<Rendered> OwnFamily::render(const ServedShape& served, const Variant& /*variant*/) const {
  const Shape& shape = served.shape();
  Rendered rendered;
  rendered.main_name = kGeneratedMain;
  const auto& parameters = description_.parameters;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    rendered.main_source += definitions_of(parameters[i], shape[i]);
  }
  rendered.main_source += fmt::format("#include \"{}\"\n", description_.main);
  const bool is_gpu = served.target().vendor != Vendor::kHost;
  for (const Function& function : description_.functions) {
    KernelEntry entry;
    entry.function = function.name;
    if (function.block) {
      entry.block_threads = (*function.block)[0] * (*function.block)[1] * (*function.block)[2];
    }
    entry.dynamic_shared_bytes = function.dynamic_shared.value_or(0);
    auto expression = filled_in(function.expression, parameters, [&](const Parameter& parameter) {
      return code_text(parameter, shape[static_cast<std::size_t>(&parameter - parameters.data())]);
    });
    if (!expression) return expression.error();
    if (!is_gpu && !expression->empty() && *expression != function.name) {
      return Error{ErrorCode::kUnsupported,
                   fmt::format("{} function {} is a template's instance, {}, which the host target "
                               "cannot name; a function declared by the macro of "
                               "broach/kernel.cuh runs there",
                               name(), function.name, *expression),
                   "", Reason::kNoKernel};
    }
    // A GPU's compiler is asked for the name in the binary, which C++ may have mangled.
    if (is_gpu) entry.expression = expression->empty() ? function.name : *std::move(expression);
    rendered.entries.push_back(std::move(entry));
  }
  return rendered;
}

}  // namespace broach::specializer::own
