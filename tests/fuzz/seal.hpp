#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace broach::fuzz {

/// An object's bytes with a header that fits: magic, version, lengths, both digests, and the key of
/// the key section where one is first. What lies behind the digests is reached in no other way.
///
/// Source:  docs/cache_format.md.
std::string seal(const std::uint8_t* data, std::size_t size);

}  // namespace broach::fuzz
