#include "tools/broach/filters.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <numeric>
#include <vector>

#include "specializer/family.hpp"
#include "specializer/target.hpp"

namespace broach::tool {
namespace {

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

std::size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

Error unknown(std::string_view kind, const std::string& word, std::vector<std::string> known) {
  const std::string nearest = nearest_word(word, known);
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("no {} \"{}\"{}", kind, word,
                           nearest.empty() ? std::string("; `broach ls` shows what there is")
                                           : fmt::format("; did you mean {}?", nearest)),
               ""};
}

// Takes the number that a text begins with off it, without leading zeros.
std::string_view take_number(std::string_view& text) noexcept {
  std::size_t length = 0;
  while (length < text.size() && is_digit(text[length])) ++length;
  std::string_view number = text.substr(0, length);
  text.remove_prefix(length);
  number.remove_prefix(std::min(number.find_first_not_of('0'), number.size()));
  return number;
}

}  // namespace

std::string nearest_word(std::string_view word, std::span<const std::string> candidates) {
  // A third of the letters wrong is another word.
  std::size_t least = std::max<std::size_t>(word.size() / 3, 1) + 1;
  std::string nearest;
  for (const std::string& candidate : candidates) {
    const std::size_t edits = edits_between(word, candidate);
    if (edits >= least) continue;
    least = edits;
    nearest = candidate;
  }
  return nearest;
}

Result<std::string> target_named(const std::string& word, std::span<const cache::Entry> entries) {
  std::vector<std::string> known;
  for (const cache::Entry& entry : entries) {
    if (entry.description.target == word) return word;
    known.push_back(entry.description.target);
  }
  if (const auto target = specializer::parse_target(word)) return target->name;
  for (const std::string_view name : specializer::known_targets()) known.emplace_back(name);
  return unknown("target", word, std::move(known));
}

Result<void> check_family(const std::string& word, std::span<const cache::Entry> entries) {
  std::vector<std::string> known;
  for (const specializer::Family* family : specializer::families()) {
    known.emplace_back(family->name());
  }
  for (const cache::Entry& entry : entries) known.push_back(entry.description.family);
  if (std::find(known.begin(), known.end(), word) != known.end()) return {};
  return unknown("family", word, std::move(known));
}

bool reads_before(std::string_view a, std::string_view b) noexcept {
  while (!a.empty() && !b.empty()) {
    if (is_digit(a[0]) && is_digit(b[0])) {
      const std::string_view one = take_number(a);
      const std::string_view two = take_number(b);
      if (one.size() != two.size()) return one.size() < two.size();
      if (one != two) return one < two;
      continue;
    }
    if (a[0] != b[0]) return a[0] < b[0];
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  return a.empty() && !b.empty();
}

}  // namespace broach::tool
