#pragma once

#include <string>
#include <vector>

#include "broach/result.hpp"
#include "specializer/compile/protocol.hpp"
#include "specializer/compilers.hpp"

namespace broach::specializer {

/// What was being compiled, by whom, when it failed.
struct Attempt {
  const Plan& plan;
  const CompilersOptions& options;
  CompilerIdentity compiler;
  std::vector<std::string> targets;  ///< What the compiler says it compiles for.
};

/// The error of a compile that the compiler refused: its worker lives.
///
/// Shapes:  the detail is the whole log, the shape and the options.
Error refused(const Attempt& attempt, rtc::Failed failed);

/// The error of a compile that cost its worker, with what would work instead.
Error lost(const Attempt& attempt, Error why);

/// "512 MiB".
std::string mebibytes(std::uint64_t bytes);

}  // namespace broach::specializer
