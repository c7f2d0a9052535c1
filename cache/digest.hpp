#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace broach::cache {

/// XXH3-128, most significant byte first. It tells accidents from whole bytes; it does not
/// authenticate.
using Digest = std::array<std::uint8_t, 16>;

Digest digest_of(std::string_view bytes);

/// The digest of two pieces as if they were one.
Digest digest_of(std::string_view first, std::string_view second);

}  // namespace broach::cache
