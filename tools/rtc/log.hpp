#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace broach::rtc {

/// The first line of a compiler's log that speaks of an error, else its first line.
std::string first_complaint(std::string_view log);

/// What of a log is handed on: more than anyone reads, little enough to hold in memory.
inline constexpr std::size_t kMaxLogBytes = std::size_t{1} << 20;

/// A log cut to kMaxLogBytes, with a last line that says how much is left out.
std::string bounded_log(std::string log);

/// A C string buffer as compilers hand it out: without the terminator that they count.
std::string without_terminator(std::string text);

}  // namespace broach::rtc
