#include "specializer/compile/lex_line.hpp"

#include <algorithm>

namespace broach::specializer::rtc {
namespace {

bool ends_identifier(std::string_view text) {
  const char c = text.empty() ? ' ' : text.back();
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Moves past a quoted literal that starts at `i`; stays on the line when it is not closed.
std::size_t past_quoted(std::string_view line, std::size_t i) {
  const char quote = line[i++];
  while (i < line.size() && line[i] != quote) i += line[i] == '\\' ? 2U : 1U;
  return std::min(i + 1, line.size());
}

}  // namespace

void follow(std::string_view line, LexState& state) {
  std::size_t i = 0;
  while (i < line.size()) {
    if (state.block_comment) {
      const std::size_t end = line.find("*/", i);
      if (end == std::string_view::npos) return;
      state.block_comment = false;
      i = end + 2;
    } else if (!state.raw_end.empty()) {
      const std::size_t end = line.find(state.raw_end, i);
      if (end == std::string_view::npos) return;
      i = end + state.raw_end.size();
      state.raw_end.clear();
    } else if (line.substr(i, 2) == "//") {
      return;
    } else if (line.substr(i, 2) == "/*") {
      state.block_comment = true;
      i += 2;
    } else if (line[i] == '"') {
      const std::string_view before = line.substr(0, i);
      const bool raw = before.ends_with('R') &&
                       (!ends_identifier(before.substr(0, i - 1)) || before.ends_with("u8R") ||
                        before.ends_with("uR") || before.ends_with("UR") || before.ends_with("LR"));
      const std::size_t open = raw ? line.find('(', i) : std::string_view::npos;
      if (open != std::string_view::npos) {
        state.raw_end.assign(1, ')');
        state.raw_end += line.substr(i + 1, open - i - 1);
        state.raw_end += '"';
        i = open + 1;
      } else {
        i = past_quoted(line, i);
      }
    } else if (line[i] == '\'' && !ends_identifier(line.substr(0, i))) {
      i = past_quoted(line, i);  // A digit separator stands after a digit and is no literal.
    } else {
      ++i;
    }
  }
}

}  // namespace broach::specializer::rtc
