#include "specializer/any_compiler.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace broach::specializer {

std::vector<cache::KeyField> without_compiler(std::vector<cache::KeyField> fields) {
  std::erase_if(fields, [](const cache::KeyField& field) { return field.label == "compiler"; });
  return fields;
}

std::vector<cache::KeyRecord> made_by_any_compiler(cache::Cache& cache,
                                                   std::span<const cache::Entry> entries,
                                                   const Plan& plan) {
  auto wanted = cache::fields_of(key_of(plan, "").stream);
  if (!wanted) return {};
  const std::vector<cache::KeyField> fields = without_compiler(std::move(*wanted));
  const std::string hash = source_hash(plan);
  std::vector<const cache::Entry*> alike;
  for (const cache::Entry& entry : entries) {
    const cache::Description& described = entry.description;
    if (described.target == plan.target.name && described.family == plan.family &&
        described.source_hash == hash) {
      alike.push_back(&entry);
    }
  }
  std::stable_sort(alike.begin(), alike.end(), [](const cache::Entry* a, const cache::Entry* b) {
    return a->created_unix_ms > b->created_unix_ms;
  });
  std::vector<cache::KeyRecord> keys;
  for (const cache::Entry* entry : alike) {
    // The words of an entry only narrow the search; the key's own fields decide.
    auto head = cache.read_head(entry->key);
    if (!head || !head->has_value()) continue;
    auto held = cache::fields_of((*head)->key.stream);
    if (held && without_compiler(std::move(*held)) == fields) keys.push_back((*head)->key);
  }
  return keys;
}

}  // namespace broach::specializer
