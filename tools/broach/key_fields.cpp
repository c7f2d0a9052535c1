#include "tools/broach/key_fields.hpp"

#include <fmt/core.h>

#include <map>
#include <string_view>
#include <utility>

#include "tools/broach/format.hpp"

namespace broach::tool {
namespace {

constexpr std::size_t kLongestShown = 100;
constexpr std::string_view kSource = "source ";

using Numbered = std::pair<std::string, std::size_t>;

std::map<Numbered, const cache::KeyField*> numbered(const std::vector<cache::KeyField>& fields) {
  std::map<std::string, std::size_t> seen;
  std::map<Numbered, const cache::KeyField*> by_place;
  for (const cache::KeyField& field : fields) {
    by_place[{field.label, seen[field.label]++}] = &field;
  }
  return by_place;
}

}  // namespace

std::vector<cache::KeyField> with_named_sources(const std::vector<cache::KeyField>& fields) {
  std::vector<cache::KeyField> named;
  for (const cache::KeyField& field : fields) {
    if (field.label == "source.bytes" && !named.empty() && named.back().label == "source.name") {
      named.back() = {std::string(kSource) + named.back().value, field.value};
    } else {
      named.push_back(field);
    }
  }
  return named;
}

bool is_source(const cache::KeyField& field) { return field.label.starts_with(kSource); }

std::string field_summary(const cache::KeyField& field) {
  if (!is_source(field) && field.value.size() <= kLongestShown) return one_line(field.value);
  cache::KeyBuilder digest;
  digest.field("text", field.value);
  return fmt::format("{} bytes, digest {}", field.value.size(),
                     digest.finish().key.hex().substr(0, 12));
}

std::vector<KeyDifference> differences(const std::vector<cache::KeyField>& wanted,
                                       const std::vector<cache::KeyField>& found) {
  auto theirs = numbered(found);
  std::vector<KeyDifference> different;
  std::map<std::string, std::size_t> seen;
  for (const cache::KeyField& field : wanted) {
    const auto match = theirs.find({field.label, seen[field.label]++});
    if (match == theirs.end()) {
      different.push_back({field.label, field_summary(field), ""});
      continue;
    }
    if (match->second->value != field.value) {
      different.push_back({field.label, field_summary(field), field_summary(*match->second)});
    }
    theirs.erase(match);
  }
  for (const auto& [place, field] : theirs) {
    different.push_back({field->label, "", field_summary(*field)});
  }
  return different;
}

}  // namespace broach::tool
