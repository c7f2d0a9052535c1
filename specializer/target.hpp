#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "broach/result.hpp"
#include "specializer/version.hpp"

namespace broach::specializer {

enum class Vendor : std::uint8_t { kNvidia, kAmd, kHost };

/// The step a chip's matrix unit computes, which fixes the bits of everything made of it.
enum class MmaStep : std::uint8_t {
  kNone,
  kTwoK8,   ///< sm_80 to sm_89: m16n8k16 is two sequential k8 steps, 24-bit alignment.
  kOneK16,  ///< sm_90 and later, and the host's model: one fused k16 step.
  kMfma,    ///< CDNA.
  kWmma,    ///< RDNA 3 and later.
};

/// A chip (or the host) that code is compiled for.
///
/// Units:   shared memory in bytes, registers as 32-bit registers.
struct Target {
  std::string name;  ///< Canonical, features included: "sm_90a", "gfx90a:xnack-".
  Vendor vendor = Vendor::kHost;
  std::string arch;  ///< What the compiler is told: "sm_90a", "gfx90a:xnack-", "x86-64-v3".
  std::uint32_t warp_width = 32;
  MmaStep mma_step = MmaStep::kNone;
  std::uint32_t max_shared_bytes = 0;     ///< A block, after opting in.
  std::uint32_t registers_per_block = 0;  ///< The register file a block can use.
  std::uint32_t max_threads_per_block = 1024;
  Version least_driver;  ///< The least CUDA version of a driver that knows the chip.
};

/// Reads a target's name.
///
/// Errors:  kInvalidArgument naming the value and the known targets.
Result<Target> parse_target(std::string_view name);

/// Every target's canonical name without optional features.
std::span<const std::string_view> known_targets();

/// The host target this machine runs: "host-x86-64-v3" or "host-aarch64". `host` parses to it.
std::string_view native_host_target();

}  // namespace broach::specializer
