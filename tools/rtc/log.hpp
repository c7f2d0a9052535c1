#pragma once

#include <string>
#include <string_view>

namespace broach::rtc {

/// The first line of a compiler's log that speaks of an error, else its first line.
std::string first_complaint(std::string_view log);

/// Whether a compiler's log says that an allocation failed. Lines that quote the source
/// (" 12 | text") do not count.
bool ran_out_of_memory(std::string_view log);

/// A C string buffer as compilers hand it out: without the terminator that they count.
std::string without_terminator(std::string text);

}  // namespace broach::rtc
