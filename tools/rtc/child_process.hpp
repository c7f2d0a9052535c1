#pragma once

#include <string>
#include <vector>

#include "broach/result.hpp"

namespace broach::rtc {

struct ChildOutput {
  int status = 0;  ///< As waitpid gives it.
  std::string out;
  std::string err;
};

/// Runs a program to its end in the root directory with `input` on its standard input. It stays
/// in this process's group, so that whoever ends the group ends it too.
///
/// Errors:  kCompilerMissing when it cannot be started; kIo.
Result<ChildOutput> run_child(const std::vector<std::string>& command, const std::string& input);

}  // namespace broach::rtc
