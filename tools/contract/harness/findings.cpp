#include "tools/contract/harness/findings.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

namespace broach::contract {
namespace {

// A wave has 96 to 106 scalar registers, all of them taken: the addresses and the lane masks of a
// batch of unrolled loads, of which a mask takes two where a wave is 64 wide.
constexpr std::string_view kScalarsInLanes =
    "the wave's scalar registers do not hold the masks and addresses of its unrolled loads; the "
    "compiler keeps the rest in lanes of vector registers, and nothing goes to memory";

bool is_chunk256(const WindowRowsShape& shape, Switch /*generic*/) {
  return shape.arith == Arith::kChunk256;
}

constexpr Spill scalars(std::uint32_t most) { return {0, 0, most}; }

constexpr std::string_view kPart = "broach_window_rows_part";
constexpr std::string_view kScalars = "scalar registers in lanes of vector registers";

// 65,536 registers over three warpgroups are 168 a thread, in units of 8.
constexpr std::string_view kSharedFile =
    "a block of three warpgroups leaves a thread 168 registers, and both halves of P beside the "
    "outputs take five more";

bool is_tile64_p32_of_128(const WindowRowsShape& shape, Switch generic) {
  return shape.arith == Arith::kTile64 && shape.form == Form::kPrefill && shape.head_dim == 128 &&
         shape.p32 == Switch::kOn && generic == Switch::kOff;
}

constexpr Finding kFindings[] = {
    {"broach_window_rows_tile64_prefill",
     "sm_90a",
     "20 bytes in local memory",
     kSharedFile,
     {20, 0, 0},
     is_tile64_p32_of_128},
    {kPart, "gfx8", kScalars, kScalarsInLanes, scalars(160), is_chunk256},
    {kPart, "gfx9", kScalars, kScalarsInLanes, scalars(160), is_chunk256},
    {kPart, "gfx10", kScalars, kScalarsInLanes, scalars(48), is_chunk256},
};

}  // namespace

Spill spill_of(const LaunchLimits& limits) {
  return {limits.spill_bytes.value_or(0), limits.vgpr_spills.value_or(0),
          limits.sgpr_spills.value_or(0)};
}

std::string words_of(const Spill& spill) {
  std::string words;
  for (const auto& [amount, unit] :
       {std::pair{spill.bytes, "bytes"}, std::pair{spill.vector_registers, "vector registers"},
        std::pair{spill.scalar_registers, "scalar registers"}}) {
    if (amount > 0) words += fmt::format("{}{} {}", words.empty() ? "" : ", ", amount, unit);
  }
  return words;
}

std::span<const Finding> findings() { return kFindings; }

const Finding* known_spill(std::string_view target, std::string_view function,
                           const WindowRowsShape& shape, Switch generic, const Spill& spill) {
  const auto* const found =
      std::find_if(std::begin(kFindings), std::end(kFindings), [&](const Finding& finding) {
        return finding.function == function && target.starts_with(finding.targets) &&
               spill.bytes <= finding.most.bytes &&
               spill.vector_registers <= finding.most.vector_registers &&
               spill.scalar_registers <= finding.most.scalar_registers &&
               finding.shows(shape, generic);
      });
  return found == std::end(kFindings) ? nullptr : found;
}

}  // namespace broach::contract
