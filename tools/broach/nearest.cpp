#include "tools/broach/nearest.hpp"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <utility>

#include "specializer/any_compiler.hpp"
#include "tools/broach/records.hpp"

namespace broach::tool {
namespace {

// Reading an object costs a file; the index row tells which few are worth it.
constexpr std::size_t kCandidatesRead = 8;

/// How much an index row shares with the plan: target, sources, and each shape parameter.
std::size_t likeness(const cache::Entry& entry, const specializer::Plan& plan, const Json& shape,
                     const std::string& source_hash) {
  std::size_t equal = 0;
  if (entry.description.target == plan.target.name) equal += 2;
  if (entry.description.source_hash == source_hash) ++equal;
  const Json theirs = parsed(entry.description.shape_json);
  for (const auto& field : shape.items()) {
    if (theirs.is_object() && theirs.value(field.key(), Json()) == field.value()) ++equal;
  }
  return equal;
}

}  // namespace

Json to_json(const Nearest& nearest) {
  Json rows = Json::array();
  for (const KeyDifference& row : nearest.differences) {
    rows.push_back({{"field", row.label}, {"wanted", row.wanted}, {"found", row.found}});
  }
  Json json = to_json(nearest.entry);
  json["differences"] = std::move(rows);
  return json;
}

std::optional<Nearest> nearest_entry(cache::Cache& cache, std::span<const cache::Entry> entries,
                                     const specializer::Plan& plan,
                                     const std::vector<cache::KeyField>& wanted) {
  const Json shape = parsed(plan.shape_json);
  const std::string source_hash = specializer::source_hash(plan);
  std::vector<std::pair<std::size_t, const cache::Entry*>> ranked;
  for (const cache::Entry& entry : entries) {
    if (entry.description.family != plan.family) continue;
    ranked.emplace_back(likeness(entry, plan, shape, source_hash), &entry);
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  if (ranked.size() > kCandidatesRead) ranked.resize(kCandidatesRead);
  const bool any_compiler = std::none_of(
      wanted.begin(), wanted.end(), [](const auto& field) { return field.label == "compiler"; });
  std::optional<Nearest> nearest;
  for (const auto& [score, entry] : ranked) {
    auto head = cache.read_head(entry->key);
    if (!head || !head->has_value()) continue;  // Damaged or gone: not a neighbour.
    auto theirs = cache::fields_of((*head)->key.stream);
    if (!theirs) continue;
    if (any_compiler) *theirs = specializer::without_compiler(std::move(*theirs));
    auto different = differences(with_named_sources(wanted), with_named_sources(*theirs));
    if (!nearest || different.size() < nearest->differences.size()) {
      nearest = Nearest{*entry, std::move(different)};
    }
  }
  return nearest;
}

}  // namespace broach::tool
