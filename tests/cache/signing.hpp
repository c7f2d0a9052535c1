#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "cache/signature.hpp"

namespace broach::cache::test {

inline std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

template <std::size_t Size>
std::array<std::uint8_t, Size> from_hex(std::string_view digits) {
  std::array<std::uint8_t, Size> bytes{};
  for (std::size_t i = 0; i < Size; ++i) {
    std::from_chars(digits.data() + 2 * i, digits.data() + 2 * i + 2, bytes[i], 16);
  }
  return bytes;
}

/// The key pair whose seed is 32 times this byte.
inline SecretKey sample_signer(std::uint8_t seed) {
  std::array<std::uint8_t, 32> bytes{};
  bytes.fill(seed);
  return SecretKey::from_seed(bytes, "sample");
}

}  // namespace broach::cache::test
