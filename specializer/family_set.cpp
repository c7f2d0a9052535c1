#include "specializer/family_set.hpp"

#include <fmt/core.h>

#include <utility>

namespace broach::specializer {

FamilySet::FamilySet() : all_(families().begin(), families().end()) {}

Result<const Family*> FamilySet::add(std::shared_ptr<const Family> family) {
  if (const Family* const known = find(family->name())) {
    if (known == family.get() ||
        (!known->digest().empty() && known->digest() == family->digest())) {
      return known;
    }
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("there are two families \"{}\" of different contents, {} and {}; one "
                             "name is one family",
                             family->name(), known->origin(), family->origin()),
                 ""};
  }
  added_.push_back(std::move(family));
  all_.push_back(added_.back().get());
  return all_.back();
}

const Family* FamilySet::find(std::string_view name) const noexcept {
  for (const Family* const family : all_) {
    if (family->name() == name) return family;
  }
  return nullptr;
}

Result<const Family*> FamilySet::named(std::string_view name) const {
  if (const Family* const family = find(name)) return family;
  std::string names;
  for (const Family* const family : all_) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", family->name());
  }
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("there is no family \"{}\"; the families are {}{}", name, names,
                           name.find('.') == std::string_view::npos
                               ? ""
                               : "; one of an engine comes by --family FILE or "
                                 "BROACH_FAMILY_PATH"),
               ""};
}

}  // namespace broach::specializer
