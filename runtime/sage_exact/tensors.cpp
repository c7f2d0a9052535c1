#include "runtime/sage_exact/tensors.hpp"

namespace broach::runtime::sage_exact {
namespace {

constexpr std::uint64_t kAlignment = 256;

}  // namespace

WorkspacePlan plan_workspace(const Sizes& sizes, const MeanGeometry& geometry, Packing packing) {
  WorkspacePlan plan{};
  const auto place = [&](std::uint64_t& offset, std::uint64_t bytes) {
    offset = plan.bytes;
    plan.bytes += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  };
  const std::uint64_t channels = std::uint64_t{sizes.heads} * kHeadDim;
  const std::uint64_t chunks = (sizes.tokens + kRangeTokens - 1U) / kRangeTokens;
  place(plan.k_mean, channels * sizeof(std::uint16_t));
  place(plan.q, sizes.elements());
  place(plan.k, sizes.elements());
  place(plan.v, channels * sizes.padded());
  place(plan.q_scale, sizes.heads * sizes.q_groups() * sizeof(float));
  place(plan.k_scale, sizes.heads * sizes.tiles() * sizeof(float));
  place(plan.v_scale, channels * sizeof(float));
  place(plan.mean_partial, channels * geometry.blocks * sizeof(float));
  place(plan.v_range, channels * chunks * 2 * sizeof(float));
  const std::uint64_t tiles = packing == Packing::kTiles ? sizes.heads * sizes.tiles() : 0;
  place(plan.packed, tiles * kPackedTileBytes);
  return plan;
}

Tensors tensors_in(void* memory, const WorkspacePlan& plan, Packing packing) {
  auto* const bytes = static_cast<std::byte*>(memory);
  Tensors tensors;
  tensors.k_mean = reinterpret_cast<std::uint16_t*>(bytes + plan.k_mean);
  tensors.quantised.q = reinterpret_cast<std::int8_t*>(bytes + plan.q);
  tensors.quantised.k = reinterpret_cast<std::int8_t*>(bytes + plan.k);
  tensors.quantised.v = reinterpret_cast<std::uint8_t*>(bytes + plan.v);
  tensors.quantised.q_scale = reinterpret_cast<float*>(bytes + plan.q_scale);
  tensors.quantised.k_scale = reinterpret_cast<float*>(bytes + plan.k_scale);
  tensors.quantised.v_scale = reinterpret_cast<float*>(bytes + plan.v_scale);
  tensors.mean_partial = reinterpret_cast<float*>(bytes + plan.mean_partial);
  tensors.v_range = reinterpret_cast<float*>(bytes + plan.v_range);
  if (packing == Packing::kTiles) tensors.packed = bytes + plan.packed;
  return tensors;
}

}  // namespace broach::runtime::sage_exact
