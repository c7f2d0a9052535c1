#include "specializer/own/json_place.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace broach::specializer::own {
namespace {

// Walks over JSON that a parser has accepted: on anything else it only has to end.
class Walker {
 public:
  explicit Walker(std::string_view text) : text_(text) {}

  std::size_t at() {
    skip_space();
    return std::min(at_, text_.size());
  }

  /// Moves to the value of a member or an element of the value here; false where it has none.
  bool enter(const JsonStep& step) {
    if (peek() != (step.is_member ? '{' : '[')) return false;
    ++at_;
    for (std::size_t number = 0;; ++number) {
      const char next = peek();
      if (next == '}' || next == ']' || next == '\0') return false;
      if (step.is_member) {
        const std::string_view name = string();
        if (peek() == ':') ++at_;
        if (name == step.name) return true;
      } else if (number == step.index) {
        return true;
      }
      pass();
      if (peek() == ',') ++at_;
    }
  }

 private:
  void skip_space() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != text_.npos) ++at_;
  }

  char peek() {
    skip_space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  /// Moves past a string; what is between its quotes, as it is spelt.
  std::string_view string() {
    const std::size_t begin = ++at_;
    while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2U : 1U;
    const std::size_t end = std::min(at_, text_.size());
    at_ = end + 1;
    return begin <= end ? text_.substr(begin, end - begin) : std::string_view();
  }

  /// Moves past a whole value.
  void pass() {
    std::size_t depth = 0;
    do {
      const char next = peek();
      if (next == '\0') return;
      if (next == '"') {
        string();
      } else if (next == '{' || next == '[') {
        ++depth;
        ++at_;
      } else if (next == '}' || next == ']') {
        --depth;
        ++at_;
      } else {
        ++at_;
        while (depth == 0 && at_ < text_.size() &&
               std::string_view(",]} \t\r\n").find(text_[at_]) == text_.npos) {
          ++at_;
        }
      }
    } while (depth > 0);
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::size_t line_of(std::string_view text, std::span<const JsonStep> path) {
  Walker walker(text);
  std::size_t place = walker.at();
  for (const JsonStep& step : path) {
    if (!walker.enter(step)) break;
    place = walker.at();
  }
  return 1 + static_cast<std::size_t>(
                 std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(place), '\n'));
}

std::string path_text(std::span<const JsonStep> path) {
  std::string text;
  for (const JsonStep& step : path) {
    if (step.is_member) {
      if (!text.empty()) text += '.';
      text += step.name;
    } else {
      text += fmt::format("[{}]", step.index);
    }
  }
  return text;
}

}  // namespace broach::specializer::own
