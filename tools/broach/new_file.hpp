#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "broach/result.hpp"

namespace broach::tool {

enum class Replace : std::uint8_t { kNo, kYes };

/// Writes a file of mode 0644, less the umask. One that is there stays, unless it is to be
/// replaced.
///
/// Errors:  kIo naming the file and the reason.
Result<void> write_new_file(const std::string& path, std::span<const std::byte> bytes,
                            Replace replace);

}  // namespace broach::tool
