#include "tools/rtc/log.hpp"

#include <algorithm>

namespace broach::rtc {
namespace {

// Takes the next line off a text.
std::string_view take_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  return line;
}

}  // namespace

std::string first_complaint(std::string_view log) {
  std::string first;
  while (!log.empty()) {
    const std::string_view line = take_line(log);
    if (line.find("error") != std::string_view::npos) return std::string(line);
    if (first.empty()) first = line;
  }
  return first.empty() ? "the compiler gave no reason" : first;
}

std::string bounded_log(std::string log) {
  if (log.size() <= kMaxLogBytes) return log;
  const std::size_t left_out = log.size() - kMaxLogBytes;
  log.resize(kMaxLogBytes);
  return log + "\n(" + std::to_string(left_out) + " more bytes are left out)\n";
}

std::string without_terminator(std::string text) {
  while (!text.empty() && text.back() == '\0') text.pop_back();
  return text;
}

}  // namespace broach::rtc
