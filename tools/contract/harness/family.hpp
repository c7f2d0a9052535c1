#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "broach/result.hpp"
#include "cache/key.hpp"
#include "specializer/plan.hpp"
#include "specializer/target.hpp"
#include "tools/contract/harness/bench.hpp"
#include "tools/contract/harness/controls.hpp"
#include "tools/contract/harness/device_memory.hpp"
#include "tools/contract/harness/gates.hpp"
#include "tools/contract/harness/limits.hpp"
#include "tools/contract/harness/listed_bound.hpp"
#include "tools/contract/harness/run.hpp"
#include "tools/contract/harness/sweep.hpp"

namespace broach::contract {

/// A case's kernel on a bench, with the case's inputs on the device.
///
/// Threads: one.
class Trial {
 public:
  virtual ~Trial() = default;

  virtual const cache::Key& key() const noexcept = 0;  ///< The kernel's binary's.

  /// Launches once over poisoned outputs and workspace, waits, and brings every output back, in a
  /// fixed order and with padding left out.
  ///
  /// Errors:  the inputs', the launch's; kInternal when a guard or padding was overwritten.
  virtual Result<std::vector<std::byte>> run(Poison poison) = 0;

  /// "row 3 head 1 dim 7": which output a byte of `run`'s belongs to.
  virtual std::string place_of(std::size_t byte) const = 0;

  // Gates 1, 3 and 4; gate 2 is the harness's. A launch that fails fails the gate.
  virtual void nonfinite(GateReport& report, const GateOptions& options) = 0;
  virtual void shapes(GateReport& report, const GateOptions& options) = 0;
  virtual void sums(GateReport& report, const GateOptions& options) = 0;
};

/// A named problem that a family has to serve.
///
/// Threads: any.
class Case {
 public:
  explicit Case(std::string name) : name_(std::move(name)) {}
  virtual ~Case() = default;

  const std::string& name() const noexcept { return name_; }

  virtual std::string shape_json() const = 0;

  /// The pinned digest of its outputs, or an empty one for a case without.
  virtual std::string_view pinned_digest() const = 0;

  /// Whether a target's outputs have the bits that are pinned.
  virtual bool has_pinned_bits(const specializer::Target& target) const = 0;

  /// Its own kernel's plan.
  ///
  /// Errors:  the specializer's.
  virtual Result<specializer::Plan> plan(const specializer::Target& target) const = 0;

  /// What its gates load beside its own, so that compilers work side by side before gates begin.
  virtual std::vector<specializer::Plan> twins(const specializer::Target& target) const = 0;

  /// Errors:  the plan's, the forge's and the device's.
  virtual Result<std::unique_ptr<Trial>> load(const Bench& bench) const = 0;

 private:
  std::string name_;
};

/// How many of a family's kernels gate 5 compiles for a target: one of each kind that every target
/// serves, the ones that need most of every kind, or all that differ.
enum class LimitDepth : std::uint8_t { kOneOfEach, kWidest, kEvery };

/// What the contract has to know of a family. One line of families.cpp registers it.
///
/// Threads: any.
class ContractFamily {
 public:
  virtual ~ContractFamily() = default;

  virtual std::string_view name() const = 0;

  /// The cases that a target serves: in full on a chip, cut to seconds on the host. A quick sweep
  /// still has every kernel kind, layout, option and served case.
  virtual std::vector<std::shared_ptr<const Case>> cases(const specializer::Target& target,
                                                         Sweep sweep) const = 0;

  /// The planted faults that a target serves.
  virtual std::vector<Control> controls(const specializer::Target& target) const = 0;

  virtual std::vector<LimitKernel> limit_kernels(LimitDepth depth) const = 0;

  /// The spills of its kernels that are known, have a reason and change no result.
  virtual std::vector<Finding> findings() const = 0;

  virtual std::vector<ListedBound> bounds() const = 0;

  /// The problem that `broach run` was asked for.
  ///
  /// Errors:  kInvalidArgument naming the size, its value and what would work; kUnsupported where
  ///          the family makes none.
  virtual Result<std::unique_ptr<const Runner>> runner(const RunRequest& request) const;
};

/// Gate 2: five runs, poisoned differently, have the same bytes.
GateReport gate_repeat(Trial& trial);

/// Runs one gate, whoever's it is.
GateReport run_gate(Gate gate, Trial& trial, const GateOptions& options);

}  // namespace broach::contract
