#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "broach/result.hpp"
#include "specializer/family.hpp"
#include "specializer/own/family_options.hpp"
#include "specializer/target.hpp"

namespace broach::specializer::own {

// What a family file says (docs/own_families.md has each member): plain values, checked when read.

/// One value of a choice, and what the source has for it where it is a macro or in an expression.
struct Value {
  std::string name;
  std::string code;
};

/// One parameter: a number, or a choice (a boolean is the choice off, on).
struct Parameter {
  std::string name;
  std::uint32_t least = 0;  ///< Of a number, and so on.
  std::uint32_t most = UINT32_MAX;
  std::uint32_t multiple_of = 1;
  std::vector<std::uint32_t> listed;  ///< The only numbers that are served, where not empty.
  std::vector<Value> values;          ///< Of a choice; empty for a number.
  std::uint32_t default_value = 0;    ///< A choice's by its position.
  std::string constant;               ///< `constexpr int NAME = …;`, or empty.
  std::string macro;                  ///< `#define NAME …`, or empty.

  bool is_choice() const noexcept { return !values.empty(); }
};

/// One kernel function.
struct Function {
  std::string name;
  std::string expression;  ///< C++ that names it: "scale<{dim}>", parameters in braces; or empty.
  std::optional<std::array<std::uint32_t, 3>> block;  ///< Threads, where the source states none.
  std::optional<std::uint32_t> dynamic_shared;        ///< Bytes a block, likewise.
  std::optional<std::array<std::uint32_t, 3>> cluster;
};

/// A header tree: by where it lies, or one that a toolkit brings ("cuda", "hip").
struct Pack {
  std::string name;
  std::string root;  ///< Empty for a toolkit's.
};

/// Which targets are served: "sm_80+", "gfx942", "host".
struct TargetRule {
  std::string text;

  bool takes(const Target& target) const noexcept;

  /// Errors:  kInvalidArgument with what works.
  static Result<TargetRule> read(std::string_view text);

  Vendor vendor = Vendor::kHost;
  std::uint32_t generation = 0;
  bool and_later = false;
};

struct Description {
  std::string name;  ///< "vendor.family"
  std::vector<Parameter> parameters;
  std::vector<std::string> sources;  ///< Names, relative to the family file.
  std::string main;                  ///< One of them.
  std::vector<Pack> packs;
  std::vector<Function> functions;
  std::vector<TargetRule> targets;
  std::array<FamilyOptions, 3> options;  ///< By Vendor.
  Refusals refuse;

  const FamilyOptions& options_of(Vendor vendor) const noexcept {
    return options[static_cast<std::size_t>(vendor)];
  }
};

/// Reads a family file's text.
///
/// Errors:  kInvalidArgument: "acme.family.json line 4: parameters[0].range: …", with the value and
///          what would work.
Result<Description> read_description(std::string_view file, std::string_view text);

}  // namespace broach::specializer::own
