#pragma once

// The names that a rendered qk_rows source gives its constants values of.

namespace broach::qk_rows {

/// How dims pair up for a rotation, of the first rope_dim dims of a head.
enum class RopeStyle : int {
  kHalf,         ///< j and j + rope_dim / 2.
  kInterleaved,  ///< 2j and 2j + 1.
};

enum class Norm : int { kNone, kRms, kL2 };

enum class Order : int { kRopeNorm, kNormRope };

/// Faults that the contract plants to see its gates turn red; kNone in every served kernel.
enum class Control : int {
  kNone,
  kRopeUnrounded,  ///< The rotated head is not rounded before what follows it.
  kNormUnrounded,  ///< The normalised head is not rounded before what follows it.
  kWrongPairing,   ///< Dims pair up in the other style.
};

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;

constexpr int min_of(int a, int b) { return a < b ? a : b; }
constexpr int at_least_pow2(int n) { return n <= 1 ? 1 : 2 * at_least_pow2((n + 1) / 2); }

/// Lanes that hold a head, 8 dims each (above 256 dims: twice 8), and heads of a block.
constexpr int head_lanes(int head_dim) { return min_of(at_least_pow2((head_dim + 7) / 8), 32); }
constexpr int block_heads(int head_dim) { return kWarps * (32 / head_lanes(head_dim)); }

}  // namespace broach::qk_rows
