#include "tools/broach/filters.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <vector>

#include "specializer/family.hpp"
#include "specializer/spelling.hpp"
#include "specializer/target.hpp"

namespace broach::tool {
namespace {

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

Error unknown(std::string_view kind, const std::string& word, std::vector<std::string> known) {
  // Entries share their names.
  std::sort(known.begin(), known.end());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  const std::string meant =
      specializer::did_you_mean(word, std::vector<std::string_view>(known.begin(), known.end()));
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format("no {} \"{}\"{}", kind, word,
                  meant.empty() ? std::string("; `broach ls` shows what there is") : meant),
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

Result<void> check_family(const std::string& word, std::span<const cache::Entry> entries,
                          const specializer::FamilySet& families) {
  std::vector<std::string> known;
  for (const specializer::Family* family : families.all()) {
    known.emplace_back(family->name());
  }
  for (const cache::Entry& entry : entries) known.push_back(entry.description.family);
  if (std::find(known.begin(), known.end(), word) != known.end()) return {};
  return unknown("family", word, std::move(known));
}

Result<std::vector<std::string>> families_chosen(Session& session,
                                                 std::span<const cache::Entry> entries) {
  auto families = session.families();
  if (!families) return families.error();
  auto names = session.family_names();
  for (const std::string& name : names) {
    if (auto known = check_family(name, entries, **families); !known) return known.error();
  }
  return names;
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
