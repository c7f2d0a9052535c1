#include "specializer/include_scan.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>
#include <utility>

#include "specializer/compile/lex_line.hpp"

namespace broach::specializer {
namespace {

using Keyword = IncludeDirective::Keyword;

constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz_";
constexpr std::string_view kBlank = " \t\r\v\f";
constexpr std::array<std::pair<std::string_view, Keyword>, 4> kDirectives = {{
    {"include", Keyword::kInclude},
    {"include_next", Keyword::kIncludeNext},
    {"import", Keyword::kImport},
    {"embed", Keyword::kEmbed},
}};

/// One line as the compiler sees it: spliced where it ends in a backslash.
class LogicalLine {
 public:
  /// Takes the next one off `source` from `at` on, which moves past it.
  LogicalLine(std::string_view source, std::size_t& at) {
    const std::size_t start = at;
    bool spliced = take(source, at);
    if (!spliced) {
      text_ = part_;
      segments_.emplace_back(0, start);
      return;
    }
    for (std::size_t from = start;; from = at, spliced = take(source, at)) {
      segments_.emplace_back(joined_.size(), from);
      joined_ += part_;
      if (!spliced) break;
    }
    text_ = joined_;
  }

  std::string_view text() const { return text_; }
  std::size_t physical_lines() const { return segments_.size(); }

  /// Where a byte of the text lies in the source.
  std::size_t offset(std::size_t in_text) const {
    std::size_t at = 0;
    while (at + 1 < segments_.size() && segments_[at + 1].first <= in_text) ++at;
    return segments_[at].second + (in_text - segments_[at].first);
  }

 private:
  // Reads a physical line into part_; says whether the next one continues it.
  bool take(std::string_view source, std::size_t& at) {
    const std::size_t end = std::min(source.find('\n', at), source.size());
    part_ = source.substr(at, end - at);
    at = std::min(end + 1, source.size());
    if (part_.ends_with('\r')) part_.remove_suffix(1);
    if (!part_.ends_with('\\') || end == source.size()) return false;
    part_.remove_suffix(1);
    return true;
  }

  std::string_view part_;
  std::string_view text_;
  std::string joined_;
  std::vector<std::pair<std::size_t, std::size_t>> segments_;  // Start in the text, in the source.
};

/// Moves past blanks and comments.
std::size_t past_blank(std::string_view text, std::size_t at) {
  for (;;) {
    at = std::min(text.find_first_not_of(kBlank, at), text.size());
    if (text.substr(at, 2) != "/*") return at;
    const std::size_t end = text.find("*/", at + 2);
    at = end == std::string_view::npos ? text.size() : end + 2;
  }
}

/// Bytes of the mark that starts a directive, or 0.
std::size_t mark_bytes(std::string_view text) {
  for (const std::string_view mark : {"#", "%:", "?\?="}) {
    if (text.starts_with(mark)) return mark.size();
  }
  return 0;
}

/// The directive that a line's text holds from `at` on, offsets counted in the text.
std::optional<IncludeDirective> directive_on(std::string_view text, std::size_t at) {
  at = past_blank(text, at);
  const std::size_t mark = mark_bytes(text.substr(at));
  if (mark == 0) return std::nullopt;
  IncludeDirective found;
  found.begin = at;
  at = past_blank(text, at + mark);
  const std::size_t word_end = std::min(text.find_first_not_of(kLetters, at), text.size());
  const auto* const known =
      std::find_if(kDirectives.begin(), kDirectives.end(),
                   [&](const auto& each) { return each.first == text.substr(at, word_end - at); });
  if (known == kDirectives.end()) return std::nullopt;
  found.keyword = known->second;
  at = past_blank(text, word_end);
  for (const auto& [form, open, close] : {std::tuple{Include::Form::kQuoted, '"', '"'},
                                          std::tuple{Include::Form::kAngle, '<', '>'}}) {
    if (at == text.size() || text[at] != open) continue;
    const std::size_t end = text.find(close, at + 1);
    if (end == std::string_view::npos) continue;
    found.include = {form, std::string(text.substr(at + 1, end - at - 1))};
    found.end = end + 1;
    return found;
  }
  found.include = {Include::Form::kComputed, std::string(text.substr(at))};
  found.end = word_end;
  return found;
}

}  // namespace

std::string spelt(const Include& include) {
  switch (include.form) {
    case Include::Form::kQuoted:
      return '"' + include.name + '"';
    case Include::Form::kAngle:
      return '<' + include.name + '>';
    case Include::Form::kComputed:
      break;
  }
  return include.name;
}

std::vector<IncludeDirective> scan_includes(std::string_view source) {
  std::vector<IncludeDirective> found;
  rtc::LexState state;
  std::size_t number = 1;
  for (std::size_t at = 0; at < source.size();) {
    const LogicalLine line(source, at);
    const std::string_view text = line.text();
    // What follows a comment of several lines may be a directive.
    std::size_t start = 0;
    bool live = state.raw_end.empty();
    if (state.block_comment) {
      const std::size_t end = text.find("*/");
      live = end != std::string_view::npos;
      if (live) start = end + 2;
    }
    if (auto directive = directive_on(text, start)) {
      directive->line = number;
      directive->begin = line.offset(directive->begin);
      directive->end = line.offset(directive->end - 1) + 1;
      directive->live = live;
      found.push_back(*std::move(directive));
    }
    rtc::follow(text, state);
    number += line.physical_lines();
  }
  return found;
}

}  // namespace broach::specializer
