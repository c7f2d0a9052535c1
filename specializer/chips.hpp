#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "specializer/target.hpp"

namespace broach::specializer {

/// Target features that change code, as bits of `Chip::features`: AMD's, and which chips' matrix
/// step the host computes.
enum FeatureBit : std::uint8_t { kNoFeatures = 0, kSramecc = 1, kXnack = 2, kStep = 4 };

/// What a target's name stands for, without its features.
///
/// Units:   bytes and 32-bit registers, a block.
struct Chip {
  std::string_view name;
  Vendor vendor;
  std::string_view arch;  ///< What the compiler is told.
  std::uint32_t warp_width;
  MmaStep mma_step;
  std::uint32_t max_shared_bytes;
  std::uint32_t registers_per_block;
  Version least_driver;
  std::uint8_t features = kNoFeatures;
};

/// Every chip that NVRTC 13.0, hiprtc 5.2 or hiprtc 6.4 compiles kernels for, and the hosts.
std::span<const Chip> chips();

/// Why a name that a compiler states is no target, or an empty one where no reason is known.
std::string_view why_no_target(std::string_view name);

/// The chip of that name, or null.
const Chip* find_chip(std::string_view name);

}  // namespace broach::specializer
