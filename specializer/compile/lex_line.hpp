#pragma once

#include <string>
#include <string_view>

namespace broach::specializer::rtc {

/// What a line of C++ starts inside of, carried from line to line.
struct LexState {
  bool block_comment = false;
  std::string raw_end;  ///< `)delimiter"` of an open raw string, else empty.
};

/// Follows comments and literals over one line.
void follow(std::string_view line, LexState& state);

}  // namespace broach::specializer::rtc
