#include "specializer/spelling.hpp"

#include <algorithm>
#include <utility>

namespace broach::specializer {
namespace {

// Longer words are none of ours, and cost the square of their length.
constexpr std::size_t kLongestWord = 64;
constexpr std::size_t kMostNames = 3;

char lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

}  // namespace

std::size_t spelling_distance(std::string_view one, std::string_view other) {
  // Rows of the table of distances between beginnings: the last three are enough.
  std::vector<std::size_t> before(other.size() + 1);
  std::vector<std::size_t> last(other.size() + 1);
  std::vector<std::size_t> row(other.size() + 1);
  for (std::size_t j = 0; j <= other.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= one.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= other.size(); ++j) {
      const bool same = lower(one[i - 1]) == lower(other[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && lower(one[i - 1]) == lower(other[j - 2]) &&
                           lower(one[i - 2]) == lower(other[j - 1]);
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[other.size()];
}

std::vector<std::string_view> likely_names(std::string_view word,
                                           std::span<const std::string_view> names) {
  // Of equal ones first what goes on as the word begins.
  std::vector<std::pair<std::size_t, std::string_view>> near;
  if (word.size() > kLongestWord) return {};
  for (const std::string_view name : names) {
    const std::size_t distance = spelling_distance(word, name);
    // A third of the letters may be wrong; and what was begun rightly may go on.
    const bool is_begun = word.size() >= 3 && name.starts_with(word);
    if (distance <= std::max<std::size_t>(1, name.size() / 3) || is_begun) {
      near.emplace_back(2 * distance + (is_begun ? 0 : 1), name);
    }
  }
  std::stable_sort(near.begin(), near.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string_view> found;
  for (const auto& [order, name] : near) {
    if (found.size() < kMostNames) found.push_back(name);
  }
  return found;
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> names) {
  std::string text;
  for (const std::string_view name : likely_names(word, names)) {
    text.append(text.empty() ? "; did you mean " : " or ").append(name);
  }
  if (!text.empty()) text += '?';
  return text;
}

}  // namespace broach::specializer
