#include "specializer/family.hpp"

#include <nlohmann/json.hpp>

#include "specializer/family_set.hpp"
#include "specializer/options.hpp"
#include "specializer/shape_json.hpp"
#include "specializer/sources.hpp"

namespace broach::specializer {

std::string_view Family::control_needs(std::string_view /*control*/, const ServedShape& /*shape*/,
                                       const Variant& /*variant*/) const {
  return {};
}

const SourceFiles& Family::files() const noexcept { return embedded_sources(); }

Result<std::vector<std::string>> Family::options(const Target& target) const {
  return compiler_options(target);
}

Result<std::vector<Shape>> Family::manifest_shapes(const nlohmann::json& entry) const {
  const auto fields = entry.find("shape");
  if (fields == entry.end() || !fields->is_object()) {
    return Error{ErrorCode::kInvalidArgument, "\"shape\" must be an object of shape fields", ""};
  }
  auto shape = shape_from_json(*this, *fields);
  if (!shape) return shape.error();
  if (auto ranged = check_ranges(*shape); !ranged) return ranged.error();
  return std::vector<Shape>{*shape};
}

const Family* find_family(std::string_view name) noexcept {
  for (const Family* family : families()) {
    if (family->name() == name) return family;
  }
  return nullptr;
}

Result<const Family*> family_named(std::string_view name) { return FamilySet().named(name); }

}  // namespace broach::specializer
