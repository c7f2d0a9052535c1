#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace broach::specializer {

/// A toolkit's or driver's version; 0.0 where none is stated or none applies.
struct Version {
  std::uint32_t major = 0;
  std::uint32_t minor = 0;

  bool stated() const noexcept { return major != 0; }
  friend auto operator<=>(const Version&, const Version&) = default;
};

/// A CUDA version as an object's record has it: "CUDA 13.0", or nothing where none is stated.
std::string cuda_words(Version version);

/// Reads back what cuda_words() wrote. Any other text states no version.
Version parse_cuda_words(std::string_view text);

}  // namespace broach::specializer
