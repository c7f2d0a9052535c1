#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/contract/harness/gates.hpp"
#include "tools/contract/window_rows/cases.hpp"
#include "tools/contract/window_rows/kernel.hpp"

namespace broach::contract::window_rows {

/// What a gate runs a kernel on: a case with rows enough, whose numbers are made once.
struct GateInput {
  const Kernel* kernel = nullptr;
  const CaseSpec* tried = nullptr;
  GateOptions options;
};

// Each runs one gate. A launch that fails fails the gate.
GateReport gate_nonfinite(const GateInput& input);
GateReport gate_shapes(const GateInput& input);
GateReport gate_sums(const GateInput& input);

/// Says where two runs of the same rows differ; an empty answer where they do not.
///
/// Shapes:  rows of `a` are compared with rows `where[i]` of `b`; both over every head and dim.
std::string difference(const Problem& a_problem, const std::vector<std::uint16_t>& a,
                       const Problem& b_problem, const std::vector<std::uint16_t>& b,
                       const std::vector<std::int32_t>& where);

/// The outputs' bytes, low byte first, padding left out.
///
/// Shapes:  [rows][heads][D]
std::vector<std::byte> packed(const Problem& problem, const std::vector<std::uint16_t>& out);

/// 32 hex digits over the outputs, padding left out.
std::string digest_of(const Problem& problem, const std::vector<std::uint16_t>& out);

}  // namespace broach::contract::window_rows
