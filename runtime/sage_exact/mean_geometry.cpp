#include "runtime/sage_exact/mean_geometry.hpp"

#include <algorithm>

namespace broach::runtime::sage_exact {
namespace {

constexpr std::uint64_t kHeadDim = 128;
constexpr std::uint64_t kBlockThreads = 128;  // 32 groups of 4 channels x 4
constexpr std::uint64_t kLanes = 4;
constexpr std::uint64_t kLeastTokens = 16 * kLanes;  // of a sum that is split at all
constexpr std::uint64_t kLeastOfThread = 16;
constexpr std::uint64_t kMostOfThread = 256;

std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

}  // namespace

MeanGeometry mean_geometry(std::uint32_t tokens, std::uint32_t heads, const MeanDevice& device) {
  MeanGeometry geometry;
  const std::uint64_t channels = heads * kHeadDim;
  geometry.factor = static_cast<float>(channels) / static_cast<float>(channels * tokens);
  if (tokens < kLeastTokens) return geometry;
  geometry.lanes = kLanes;
  geometry.step = kLanes;
  // A head's 128 channels are one block's 32 groups of 4, so blocks a split are heads.
  const std::uint64_t of_thread = ceil_div(tokens, kLanes);
  const std::uint64_t resident =
      device.multiprocessors * (device.threads_per_multiprocessor / kBlockThreads);
  if (of_thread < kMostOfThread || heads > resident) return geometry;
  const std::uint64_t blocks =
      std::max(std::min(ceil_div(resident, heads), ceil_div(of_thread, kLeastOfThread)),
               ceil_div(of_thread, kMostOfThread));
  geometry.blocks = static_cast<std::uint32_t>(blocks);
  geometry.step = static_cast<std::uint32_t>(kLanes * blocks);
  return geometry;
}

}  // namespace broach::runtime::sage_exact
