#pragma once

#include <cstdint>
#include <span>

#include "broach/types.hpp"

namespace broach::contract {

// Made inputs are functions of names: every machine draws the same numbers, whatever the order.

/// splitmix64's finaliser: every bit of the input reaches every bit of the output.
std::uint64_t mixed(std::uint64_t x) noexcept;

/// From 0 up to 1.
double uniform(std::uint64_t name) noexcept;

/// Four 16-bit uniforms of one draw, centred and scaled to unit variance: near enough to normal,
/// and made of exact integer steps.
double bell(std::uint64_t draw) noexcept;

/// A vector of the wanted RMS, which is made exact before rounding, as a norm layer's is.
void draw_vector(std::span<std::uint16_t> to, std::uint64_t name, double rms, Dtype dtype);

}  // namespace broach::contract
