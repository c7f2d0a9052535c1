#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "broach/result.hpp"
#include "tools/contract/window_rows/cases.hpp"
#include "tools/contract/window_rows/kernel.hpp"
#include "tools/contract/window_rows/range.hpp"

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
  std::uint64_t comparisons = 0;      ///< Outputs compared by bits or by range.
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

/// What a gate runs a kernel on: a case with rows enough, whose numbers are made once.
struct GateInput {
  const Kernel* kernel = nullptr;
  const DecodeCase* tried = nullptr;
  const Bench* host = nullptr;  ///< To compare a chip's bits with; null on the host itself.
  std::string_view digest;      ///< The pinned digest of the host's outputs, or empty.
  std::uint32_t threads = 0;    ///< For range checks; 0: one a core.
  Until until = Until::kEnd;

  bool ends_with(const GateReport& report) const noexcept {
    return until == Until::kFirstFailure && !report.passed;
  }
};

// Each runs one gate. A launch that fails fails the gate.
GateReport gate_nonfinite(const GateInput& input);
GateReport gate_repeat(const GateInput& input);
GateReport gate_shapes(const GateInput& input);
GateReport gate_sums(const GateInput& input);
GateReport run_gate(Gate gate, const GateInput& input);

/// Says where two runs of the same rows differ; an empty answer where they do not.
///
/// Shapes:  rows of `a` are compared with rows `where[i]` of `b`; both over every head and dim.
std::string difference(const DecodeProblem& a_problem, const std::vector<std::uint16_t>& a,
                       const DecodeProblem& b_problem, const std::vector<std::uint16_t>& b,
                       const std::vector<std::int32_t>& where);

/// 32 hex digits over the outputs, padding left out.
std::string digest_of(const DecodeProblem& problem, const std::vector<std::uint16_t>& out);

}  // namespace broach::contract
