#include "specializer/include_macros.hpp"

#include <algorithm>
#include <cstring>

namespace broach::specializer {
namespace {

constexpr std::string_view kBlank = " \t\r\v\f";
constexpr int kMaxDepth = 16;
constexpr int kMaxSteps = 2000;
// What a header's name can reasonably be: longer definitions are something else.
constexpr std::size_t kMaxBodyBytes = 256;

bool is_word(char c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_macro_name(std::string_view word) {
  return word.front() == '_' ||
         std::any_of(word.begin(), word.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

std::string_view without_blanks(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlank), text.size()));
  return text.substr(0, text.find_last_not_of(kBlank) + 1);
}

std::string_view without_comment(std::string_view text) {
  return without_blanks(text.substr(0, std::min(text.find("//"), text.find("/*"))));
}

/// Whether what ends here is "#define", blanks between its parts.
bool ends_in_define(std::string_view text) {
  const std::string_view kept = text.substr(0, text.find_last_not_of(kBlank) + 1);
  if (kept.size() == text.size() || !kept.ends_with("define")) return false;
  const std::string_view before = without_blanks(kept.substr(0, kept.size() - 6));
  return before.ends_with('#') || before.ends_with("%:");
}

void add_definitions(std::string_view bytes, const std::string& name,
                     std::vector<std::string>& bodies) {
  const char* at = bytes.data();
  const char* const end = bytes.data() + bytes.size();
  while (at < end) {
    const auto* found = static_cast<const char*>(
        ::memmem(at, static_cast<std::size_t>(end - at), name.data(), name.size()));
    if (found == nullptr) return;
    at = found + name.size();
    const std::string_view before(bytes.data(), static_cast<std::size_t>(found - bytes.data()));
    const std::size_t line_start = before.rfind('\n') + 1;
    if (!ends_in_define(before.substr(line_start))) continue;
    std::string_view rest(at, static_cast<std::size_t>(end - at));
    rest = rest.substr(0, rest.find('\n'));
    if (rest.empty() || kBlank.find(rest.front()) == std::string_view::npos) continue;
    const std::string_view body = without_comment(rest);
    if (body.empty() || body.size() > kMaxBodyBytes) continue;
    if (std::find(bodies.begin(), bodies.end(), body) == bodies.end()) bodies.emplace_back(body);
  }
}

}  // namespace

const std::vector<std::string>& IncludeMacros::definitions_of(const std::string& name) {
  Definitions& known = known_[name];
  for (; known.files_read < files_.size(); ++known.files_read) {
    add_definitions(files_[known.files_read], name, known.bodies);
  }
  return known.bodies;
}

void IncludeMacros::expand(std::string text, std::size_t from, int depth,
                           std::vector<std::string>& out) {
  if (depth > kMaxDepth || out.size() >= kMaxExpansions || text.size() > kMaxBodyBytes) return;
  if (--steps_left_ < 0) return;
  while (from < text.size() && !text.starts_with('"')) {
    if (!is_word(text[from])) {
      ++from;
      continue;
    }
    std::size_t end = from;
    while (end < text.size() && is_word(text[end])) ++end;
    const std::string word = text.substr(from, end - from);
    if (is_macro_name(word)) {
      const std::vector<std::string> bodies = definitions_of(word);
      for (const std::string& body : bodies) {
        expand(text.substr(0, from) + body + text.substr(end), from, depth + 1, out);
      }
      if (!bodies.empty()) return;
    }
    from = end;
  }
  if (std::find(out.begin(), out.end(), text) == out.end()) out.push_back(std::move(text));
}

std::vector<Include> IncludeMacros::expansions(std::string_view text) {
  std::vector<std::string> texts;
  steps_left_ = kMaxSteps;
  expand(std::string(without_comment(text)), 0, 0, texts);
  std::vector<Include> found;
  for (const std::string& each : texts) {
    if (each.size() < 3) continue;
    const std::string name = each.substr(1, each.size() - 2);
    if (each.front() == '<' && each.back() == '>') found.push_back({Include::Form::kAngle, name});
    if (each.front() == '"' && each.back() == '"') found.push_back({Include::Form::kQuoted, name});
  }
  return found;
}

}  // namespace broach::specializer
