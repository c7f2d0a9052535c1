#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "specializer/forge.hpp"
#include "specializer/target.hpp"

namespace broach::contract {

/// A kernel whose limits gate 5 looks at.
struct LimitKernel {
  WindowRowsShape shape;
  specializer::Variant variant;
};

/// A set of compilers. The first compiles for every target; another for AMD's, where two versions
/// of hiprtc may be had side by side.
struct Toolchain {
  std::string name;  ///< "system", "prefix"
  specializer::Forge* forge = nullptr;
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
  std::string toolchain;
  std::string compiler;  ///< As loaded; empty when there is none.
  double seconds = 0;
  std::uint32_t binaries = 0;
  std::uint32_t functions = 0;
  std::vector<std::string> problems;  ///< One line a difference or a limit that does not fit.
  std::vector<std::string> findings;  ///< One line a spill that findings.hpp knows the reason of.
  std::vector<std::string> notes;     ///< Shapes that the target does not serve, other spills.
  std::string not_compiled;           ///< Why nothing was compiled here; empty when it was.
  std::vector<KernelLimits> limits;   ///< Of every binary.
};

/// What gate 5 covers.
struct LimitRequest {
  std::vector<Toolchain> toolchains;
  std::vector<std::string> targets;
  std::vector<LimitKernel> kernels;
  std::uint32_t jobs = 0;                        ///< Compiles side by side; 0: one a core.
  std::function<void(const LimitReport&)> done;  ///< From one thread at a time.
};

/// Compiles every kernel for every target with every toolchain and holds its limits against each
/// other: as read out of the binary again, as the object states them, as the index has them, as the
/// target allows, and as a live device reported them. A spill is a finding where findings.hpp knows
/// its reason, and a note where nobody has looked at it yet.
///
/// A target that no compiler is found for, or that the one found cannot build an empty source for,
/// is a fact about the machine: nothing is compiled and nothing is held against the kernels. Once
/// the empty source builds, a compile that fails is a problem, however it fails.
std::vector<LimitReport> check_limits(const LimitRequest& request);

/// Where two toolchains' binaries of the same kernels for the same target need different limits,
/// one line a function and field: "gfx90a: broach_window_rows_part vgpr 64 -> 60 (<kernel>)". Facts
/// about the compilers, not problems.
std::vector<std::string> toolchain_differences(const std::vector<LimitReport>& reports);

/// The fields in which two statements of a function's limits differ; fields that either side does
/// not state are left out. Empty when none does.
std::string difference(const LaunchLimits& a, const LaunchLimits& b);

}  // namespace broach::contract
