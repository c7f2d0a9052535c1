#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "broach/result.hpp"
#include "tools/contract/harness/bench.hpp"

namespace broach::contract {

/// One tensor of a family's golden case, as a device left it.
struct GoldenRow {
  std::string name;  ///< The case's.
  std::string tensor;
  std::string digest;  ///< SHA-256 of its bytes, in hex.
  std::string golden;  ///< What the reference's bytes have.

  bool equal() const noexcept { return digest == golden; }
};

/// What a ContractFamily is beside, whose contract is golden bytes.
///
/// Threads: any.
class GoldenFamily {
 public:
  virtual ~GoldenFamily() = default;

  /// Every golden case that the bench's device can hold, tensor by tensor; `done` hears of each
  /// case's rows as they come.
  ///
  /// Errors:  kUnsupported where the device's target has no golden bytes; the specializer's, the
  ///          forge's and the device's.
  virtual Result<std::vector<GoldenRow>> golden(
      const Bench& bench, const std::function<void(std::span<const GoldenRow>)>& done) const = 0;
};

}  // namespace broach::contract
