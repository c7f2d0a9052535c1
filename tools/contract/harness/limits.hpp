#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device.hpp"
#include "specializer/plan.hpp"
#include "tools/contract/harness/findings.hpp"
#include "tools/contract/harness/limit_differences.hpp"
#include "tools/contract/harness/toolchains.hpp"

namespace broach::contract {

/// A kernel whose limits gate 5 looks at.
struct LimitKernel {
  std::string kind;  ///< "decode tile64": what it is, where a target has none of it.
  /// Nothing for a target that does not serve it.
  std::function<Result<std::optional<specializer::Plan>>(const specializer::Target&)> plan;
  std::vector<Finding> findings;  ///< The spills that are known of it.
};

/// What gate 5 compiles for a target.
struct LimitScope {
  std::string target;
  std::vector<LimitKernel> kernels;
};

/// What a binary of one kernel needs.
struct KernelLimits {
  std::string kernel;  ///< Its plan's shape, as JSON.
  std::vector<LaunchLimits> functions;
};

/// Gate 5 for one target and toolchain: what compiled objects say, what is recorded, what the chip
/// can hold.
struct LimitReport {
  std::string target;
  std::string toolchain;  ///< Where several may compile for the target.
  std::string compiler;   ///< As loaded; empty when there is none.
  std::uint32_t binaries = 0;
  std::uint32_t compiled = 0;  ///< Of these; the others were in the cache.
  double compile_seconds = 0;  ///< Of `compiled`, added up.
  std::uint32_t functions = 0;
  std::uint32_t live = 0;  ///< Functions that a live device was asked about.
  std::vector<std::string>
      problems;  ///< One line a difference, a spill, a limit that does not fit.
  std::vector<std::string> findings;  ///< One line a spill that findings.hpp knows the reason of.
  std::vector<std::string> unserved;  ///< "decode tile64": what has no kernel for this target.
  std::string not_compiled;           ///< Why nothing was compiled here; empty when it was.
  std::vector<KernelLimits> limits;   ///< Of every binary.
};

/// What gate 5 covers.
struct LimitRequest {
  /// The first compiles for every target; others, of which each has another hiprtc, for AMD's.
  std::vector<Toolchain> toolchains;
  std::vector<LimitScope> scopes;
  /// Loads what is compiled for its target by the first toolchain and is asked in turn; may be
  /// null.
  runtime::Device* device = nullptr;
  std::uint32_t jobs = 0;                          ///< Compiles side by side; 0: one a core.
  std::function<void(std::string_view)> progress;  ///< One line, from one thread at a time.
};

/// All of gate 5.
struct LimitRun {
  std::vector<CompilerReport> compilers;
  std::vector<LimitReport> targets;  ///< In the request's order, a target's toolchains together.
  std::vector<LimitDifference> differences;
  std::uint32_t left_out = 0;  ///< Targets that broach knows and that were not asked for.
  double seconds = 0;
};

/// Compiles every kernel for every target with every toolchain and holds its limits against each
/// other: as read out of the binary again, as the object states them, as the index has them, as the
/// target allows, and as a live device reports them. A spill is a finding where findings.hpp knows
/// its reason, and a problem where nobody has looked at it yet.
///
/// A target that no compiler is found for, or that the one found does not compile for, is a fact
/// about the machine: nothing is compiled and nothing is held against the kernels. Where the
/// compiler says that it does, a compile that fails is a problem, however it fails.
LimitRun check_limits(const LimitRequest& request);

/// A function's row among others, or null.
const LaunchLimits* limits_named(const std::vector<LaunchLimits>& limits,
                                 std::string_view function);

}  // namespace broach::contract
