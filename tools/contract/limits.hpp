#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "specializer/forge.hpp"
#include "specializer/target.hpp"

namespace broach::contract {

/// Gate 5 for one target: what compiled objects say, what is recorded, what the chip can hold.
struct LimitReport {
  std::string target;
  std::string compiler;  ///< As loaded; empty when there is none.
  double seconds = 0;
  std::uint32_t binaries = 0;
  std::uint32_t functions = 0;
  std::vector<std::string> problems;  ///< One line a difference or a limit that does not fit.
  std::vector<std::string> notes;     ///< Spills; shapes that the target does not serve.
  std::string not_compiled;           ///< Why nothing was compiled here; empty when it was.
};

/// Compiles every shape for a target and holds its limits against each other: as read out of the
/// binary again, as the object states them, as the index has them, as the target allows, and as a
/// live device reported them.
///
/// A target that no compiler is found for, or that the one found cannot build an empty source for,
/// is a fact about the machine: nothing is compiled and nothing is held against the kernels. Once
/// the empty source builds, a compile that fails is a problem, however it fails.
LimitReport check_limits(specializer::Forge& forge, const specializer::Target& target,
                         const std::vector<WindowRowsShape>& shapes);

/// The fields in which two statements of a function's limits differ; fields that either side does
/// not state are left out. Empty when none does.
std::string difference(const LaunchLimits& a, const LaunchLimits& b);

}  // namespace broach::contract
