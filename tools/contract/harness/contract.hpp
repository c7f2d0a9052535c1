#pragma once

#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/contract/harness/family.hpp"
#include "tools/contract/harness/gates.hpp"
#include "tools/contract/harness/limits.hpp"

namespace broach::contract {

/// What one kernel got from the gates.
struct KernelReport {
  std::string name;
  std::string shape_json;
  cache::Key key;
  std::vector<GateReport> gates;
  std::string error;  ///< Why it could not be built, when it could not.

  bool passed() const noexcept;
};

/// Everything a contract run found.
struct ContractReport {
  std::string target;
  std::string device;
  std::string driver;
  std::vector<KernelReport> kernels;
  std::vector<ControlReport> controls;
  LimitRun limits;

  std::uint32_t failed() const noexcept;
  std::uint32_t missed() const noexcept;
  std::uint32_t limit_problems() const noexcept;
  std::uint32_t known_findings() const noexcept;
  /// No failure, no missed control, no limit problem, and something was run.
  bool passed() const noexcept;
};

/// What a contract run covers.
struct ContractRequest {
  std::vector<const ContractFamily*> families;  ///< Whose cases and controls these are.
  std::vector<std::shared_ptr<const Case>> cases;
  std::vector<Control> controls;
  LimitRequest limits;  ///< No scopes: gate 5 is not run. No toolchain: the bench's.
  std::vector<Gate> gates{std::begin(kKernelGates), std::end(kKernelGates)};
  const Bench* host = nullptr;  ///< To hold a chip's bits against; null on the host itself.
  std::uint32_t threads = 0;    ///< For range checks; 0: one a core.
  std::uint32_t jobs = 0;       ///< Compiles and cases side by side; 0: one a core.
  std::function<void(std::string_view)> progress;  ///< One line a step, from one thread at a time.
};

/// The contract of everything that families promise on a target: full cases on a chip, cut ones on
/// the host. Either sweep tries every control, and the limits of every target.
ContractRequest contract_of(std::span<const ContractFamily* const> families,
                            const specializer::Target& target, Sweep sweep);

/// Runs the gates over every case, the controls, and the limits, and stores a receipt a kernel.
ContractReport run_contract(const Bench& bench, const ContractRequest& request);

/// What the families' digests.txt should hold for a request's cases on a bench.
///
/// Errors:  the first case's that cannot be made, compiled or run.
Result<std::string> digest_lines(const Bench& bench, const ContractRequest& request);

}  // namespace broach::contract
