#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "broach/result.hpp"
#include "tools/contract/sage_exact/inputs.hpp"

namespace broach::contract::sage_exact {

/// A case whose boundary tensors the reference left on an sm_90 chip.
struct GoldenCase {
  std::string name;
  InputRule rule;
  std::vector<InputChange> changes;
  /// SHA-256 in hex of each boundary tensor's bytes, contiguous, by name: "input_qkv", "k_mean",
  /// "q_int8", "q_scale", "k_int8", "k_scale", "v_t_bf16", "v_fp8", "v_scale", "out".
  std::vector<std::pair<std::string, std::string>> digests;

  /// The digest of a tensor, or "".
  std::string_view digest(std::string_view tensor) const noexcept;
};

/// The case's projection: the rule's, changed.
std::vector<std::uint16_t> make_input(const GoldenCase& golden);

/// SHA-256 in hex.
std::string sha256_of(const void* bytes, std::size_t count);

/// Every golden case: those of the rule alone, then the adversarial ones.
///
/// Errors:  kInternal when the embedded files cannot be read.
Result<std::vector<GoldenCase>> golden_cases();

}  // namespace broach::contract::sage_exact
