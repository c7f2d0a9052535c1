#include "tools/rtc/log.hpp"

namespace broach::rtc {

std::string first_complaint(std::string_view log) {
  std::string first;
  while (!log.empty()) {
    const std::string_view line = log.substr(0, log.find('\n'));
    log.remove_prefix(std::min(log.size(), line.size() + 1));
    if (line.find("error") != std::string_view::npos) return std::string(line);
    if (first.empty()) first = line;
  }
  return first.empty() ? "the compiler gave no reason" : first;
}

std::string without_terminator(std::string text) {
  while (!text.empty() && text.back() == '\0') text.pop_back();
  return text;
}

}  // namespace broach::rtc
