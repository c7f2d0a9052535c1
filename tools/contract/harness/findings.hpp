#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "broach/types.hpp"

namespace broach::contract {

/// What a function keeps elsewhere because its registers do not hold it, a thread (or, of scalars,
/// a wave).
struct Spill {
  std::uint32_t bytes = 0;             ///< In local memory.
  std::uint32_t vector_registers = 0;  ///< AMD: in local memory.
  std::uint32_t scalar_registers = 0;  ///< AMD: in lanes of vector registers.

  bool any() const noexcept { return bytes > 0 || vector_registers > 0 || scalar_registers > 0; }
};

Spill spill_of(const LaunchLimits& limits);
std::string words_of(const Spill& spill);

/// A flaw of compiled kernels that is known, has a reason, and changes no result.
struct Finding {
  std::string_view function;  ///< The kernel function it shows in.
  std::string_view targets;   ///< What the targets' names begin with.
  std::string_view what;
  std::string_view why;
  Spill most;  ///< A function that spills more of anything is another finding.
};

/// A bound of spilled scalar registers alone.
constexpr Spill scalars(std::uint32_t most) noexcept { return {0, 0, most}; }

/// What such a finding is, and why. A wave has 96 to 106 scalar registers, all of them taken: the
/// addresses and the lane masks of a batch of unrolled loads, of which a mask takes two where a
/// wave is 64 wide.
inline constexpr std::string_view kScalars = "scalar registers in lanes of vector registers";
inline constexpr std::string_view kScalarsInLanes =
    "the wave's scalar registers do not hold the masks and addresses of its unrolled loads; the "
    "compiler keeps the rest in lanes of vector registers, and nothing goes to memory";

/// The finding that a spill belongs to, or null for one that nobody has looked at.
const Finding* known_spill(std::span<const Finding> findings, std::string_view target,
                           std::string_view function, const Spill& spill);

}  // namespace broach::contract
