#pragma once

#include <cstddef>
#include <cstdint>

#include "broach/sage_exact.h"
#include "runtime/sage_exact/mean_geometry.hpp"

namespace broach::runtime::sage_exact {

constexpr std::uint32_t kHeadDim = 128;
constexpr std::uint32_t kTileKeys = 64;

/// The sizes that follow from tokens and heads.
struct Sizes {
  std::uint32_t tokens = 0;
  std::uint32_t heads = 0;

  std::uint64_t q_groups() const noexcept { return (tokens + 127U) / 128U * 4U; }
  std::uint64_t tiles() const noexcept { return (tokens + kTileKeys - 1U) / kTileKeys; }
  std::uint64_t padded() const noexcept { return tiles() * kTileKeys; }
  std::uint64_t elements() const noexcept { return std::uint64_t{tokens} * heads * kHeadDim; }
};

/// Tokens that one block of the search for V's range reads.
constexpr std::uint32_t kRangeTokens = 512;

/// Bytes of a packed key tile: K [64][128], then V as f16 [128][64].
constexpr std::uint64_t kPackedTileBytes = kTileKeys * kHeadDim * 3;

/// Everything between the inputs and the output, in a caller's memory.
///
/// Owns:    nothing.
struct Tensors {
  std::uint16_t* k_mean = nullptr;  ///< [H, D]
  broach_sage_exact_quantised quantised = {};
  float* mean_partial = nullptr;      ///< [H, blocks, D]
  float* v_range = nullptr;           ///< [H, chunks, 2, D]
  void* packed = nullptr;             ///< [H, T] packed tiles; null where no kernel reads them
  std::uint16_t* v_t_bf16 = nullptr;  ///< [D, H, P]; null: not written
};

/// Where each tensor lies in a workspace, 256-byte aligned; `v_t_bf16` is not among them.
///
/// Units:   bytes from the workspace's start.
struct WorkspacePlan {
  std::uint64_t k_mean, q, k, v, q_scale, k_scale, v_scale, mean_partial, v_range, packed, bytes;
};

enum class Packing : std::uint8_t { kNone, kTiles };

WorkspacePlan plan_workspace(const Sizes& sizes, const MeanGeometry& geometry, Packing packing);

/// The tensors of a workspace that begins at `memory`.
Tensors tensors_in(void* memory, const WorkspacePlan& plan, Packing packing);

}  // namespace broach::runtime::sage_exact
