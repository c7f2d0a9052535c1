#include "tools/rtc/log.hpp"

#include <algorithm>
#include <array>

namespace broach::rtc {
namespace {

// Takes the next line off a text.
std::string_view take_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  return line;
}

}  // namespace

bool ran_out_of_memory(std::string_view log) {
  // The last is what NVRTC's front end says when it runs out while reporting that it ran out.
  constexpr std::array<std::string_view, 5> kSigns = {"out of memory", "memory exhausted",
                                                      "bad_alloc", "Cannot allocate memory",
                                                      "Loop in catastrophic error processing"};
  while (!log.empty()) {
    const std::string_view line = take_line(log);
    if (line.find(" | ") != std::string_view::npos) continue;
    if (std::any_of(kSigns.begin(), kSigns.end(), [&](std::string_view sign) {
          return line.find(sign) != std::string_view::npos;
        })) {
      return true;
    }
  }
  return false;
}

std::string first_complaint(std::string_view log) {
  std::string first;
  while (!log.empty()) {
    const std::string_view line = take_line(log);
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
