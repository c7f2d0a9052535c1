#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "broach/result.hpp"

namespace broach::rtc {

/// What a program may print; a compiler that prints more has lost its way.
inline constexpr std::size_t kMaxPrintedBytes = std::size_t{16} << 20;

struct ChildOutput {
  int status = 0;  ///< As waitpid gives it.
  std::string out;
  std::string err;
};

/// Runs a program to its end in the root directory with `input` on its standard input. It stays
/// in this process's group, so that whoever ends the group ends it too.
///
/// Errors:  kCompilerMissing when it cannot be started; kLimitExceeded when it prints more than
///          kMaxPrintedBytes, with the start of it in the detail: it is stopped then; kIo.
Result<ChildOutput> run_child(const std::vector<std::string>& command, const std::string& input);

}  // namespace broach::rtc
