#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace broach::cache::remote {

/// Whether a terminal shows these bytes as they are.
inline bool is_printable(std::string_view text) noexcept {
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return c >= 0x20 && c < 0x7f; });
}

/// What a peer said, for people: its first bytes, none of which moves a terminal's cursor.
inline std::string printable(std::string_view text) {
  constexpr std::size_t kLongest = 200;
  std::string shown(text.substr(0, kLongest));
  std::replace_if(
      shown.begin(), shown.end(), [](unsigned char c) { return c < 0x20 || c >= 0x7f; }, '?');
  return shown;
}

}  // namespace broach::cache::remote
