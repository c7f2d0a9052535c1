#include "cache/object_source.hpp"

#include <algorithm>

namespace broach::cache {

std::string first_difference(const KeyRecord& asked, const KeyRecord& stored) {
  const auto a = fields_of(asked.stream);
  const auto b = fields_of(stored.stream);
  if (!a || !b) return "its key fields do not parse";
  for (std::size_t i = 0; i < std::max(a->size(), b->size()); ++i) {
    if (i >= a->size() || i >= b->size()) return "it has another number of key fields";
    if ((*a)[i] != (*b)[i]) return "its key field \"" + (*b)[i].label + "\" differs";
  }
  return "its key differs";
}

std::string object_name(const Key& key) {
  const std::string hex = key.hex();
  return "objects/" + hex.substr(0, 2) + "/" + hex;
}

}  // namespace broach::cache
