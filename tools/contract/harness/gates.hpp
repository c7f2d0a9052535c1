#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/contract/harness/bench.hpp"
#include "tools/contract/harness/range_report.hpp"

namespace broach::contract {

/// The gates a kernel passes before its binary is trusted. Gate 5 is limits.hpp's.
enum class Gate : std::uint8_t { kNonFinite = 1, kRepeat = 2, kShapes = 3, kSums = 4 };
std::string_view name_of(Gate gate) noexcept;
inline constexpr Gate kKernelGates[] = {Gate::kNonFinite, Gate::kRepeat, Gate::kShapes,
                                        Gate::kSums};

/// One gate's verdict on one kernel.
struct GateReport {
  Gate gate = Gate::kNonFinite;
  bool passed = true;
  double seconds = 0;
  std::uint64_t comparisons = 0;      ///< Outputs by bits or by range; gate 2's are bytes.
  RangeReport range;                  ///< Of every range check in the gate.
  std::vector<std::string> failures;  ///< One line a failed part, the first few of them.
  std::vector<std::string> notes;     ///< What the gate cannot separate here, and why.

  void fail(std::string words);
  /// Counts a range check; `part` names what was run.
  void judge(const RangeReport& report, std::string_view part);
};

/// How far a gate goes: through all of its parts, or to the first that fails, which is all that a
/// planted fault has to show.
enum class Until : std::uint8_t { kEnd, kFirstFailure };

/// What a gate may hold a kernel against, and how far it goes.
struct GateOptions {
  const Bench* host = nullptr;  ///< To compare a chip's bits with; null on the host itself.
  std::string_view digest;      ///< The pinned digest of the case's outputs, or empty.
  std::uint32_t threads = 0;    ///< For checks of many outputs; 0: one a core.
  Until until = Until::kEnd;

  bool ends_with(const GateReport& report) const noexcept {
    return until == Until::kFirstFailure && !report.passed;
  }
};

}  // namespace broach::contract
