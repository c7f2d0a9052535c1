#pragma once

#include <cstdint>
#include <string_view>

namespace broach::specializer::rtc {

/// What a compiler's log says that kept it from its work, besides the source.
enum class Trouble : std::uint8_t {
  kNone,
  kMemory,   ///< An allocation failed.
  kMachine,  ///< A full disk, too many open files or processes, a file system that fails.
};

/// Reads a log as compilers write it in the C locale. Lines that quote the source (" 12 | text") do
/// not count.
Trouble trouble_in(std::string_view log);

}  // namespace broach::specializer::rtc
