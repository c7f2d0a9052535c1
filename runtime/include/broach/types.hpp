#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace broach {

/// The 16-bit type of q, k, v and the output.
enum class Dtype : std::uint8_t { kBf16, kF16 };

/// A choice that is part of a shape.
enum class Switch : std::uint8_t { kOff, kOn };

/// Where the key at a position lives in the cache.
enum class KvLayoutKind : std::uint8_t {
  kLinear,  ///< Index = position.
  kRing,    ///< Index = position mod `length`.
  kPaged,   ///< Page table entry position / `length`, then position mod `length`.
};

/// A key-value cache layout with the number it is specialised for.
///
/// Units:   `length` counts positions: the ring's length or a page's; 0 for linear.
struct KvLayout {
  KvLayoutKind kind = KvLayoutKind::kLinear;
  std::uint32_t length = 0;

  friend bool operator==(const KvLayout&, const KvLayout&) = default;
};

/// What one compiled function needs to launch, as read from the binary (or from a live device).
///
/// Units:   bytes and counts as named; an absent value is one that the source does not state.
struct LaunchLimits {
  std::string function;
  std::optional<std::uint32_t> registers;           ///< 32-bit registers a thread (VGPRs on AMD).
  std::optional<std::uint32_t> spill_bytes;         ///< Spilled bytes a thread.
  std::optional<std::uint32_t> stack_bytes;         ///< Local (scratch) bytes a thread.
  std::optional<std::uint32_t> static_shared;       ///< Bytes a block.
  std::optional<std::uint32_t> max_dynamic_shared;  ///< Bytes a block that remain for dynamic use.
  std::optional<std::uint32_t> constant_bytes;
  std::optional<std::uint32_t> max_threads;    ///< Threads a block the binary can launch with.
  std::optional<std::uint32_t> launch_bounds;  ///< Threads a block promised to the compiler.
  std::optional<std::uint32_t> barriers;
  std::optional<std::uint32_t> wave_size;
  std::optional<std::uint32_t> vgprs;
  std::optional<std::uint32_t> agprs;
  std::optional<std::uint32_t> sgprs;
  std::optional<std::uint32_t> vgpr_spills;  ///< Registers, not bytes.
  std::optional<std::uint32_t> sgpr_spills;  ///< Registers, not bytes.

  // What every launch has, where the kernel states it: threads a block, bytes of dynamic shared
  // memory, blocks a cluster.
  std::optional<std::uint32_t> block_x;
  std::optional<std::uint32_t> block_y;
  std::optional<std::uint32_t> block_z;
  std::optional<std::uint32_t> dynamic_shared;
  std::optional<std::uint32_t> cluster_x;
  std::optional<std::uint32_t> cluster_y;
  std::optional<std::uint32_t> cluster_z;

  /// Bytes of each parameter, in order; empty for a function that has none.
  std::optional<std::vector<std::uint32_t>> parameter_bytes;
  std::string source;  ///< Where the figures came from: "cubin", "code object metadata", "device".

  friend bool operator==(const LaunchLimits&, const LaunchLimits&) = default;
};

}  // namespace broach
