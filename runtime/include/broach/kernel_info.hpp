#pragma once

#include <string>
#include <vector>

#include "broach/types.hpp"

namespace broach {

/// What serves behind a handle at the moment.
struct KernelInfo {
  std::string key;                   ///< 32 hex digits: `broach show KEY`.
  std::string layer;                 ///< Where the binary was: a directory, a remote, "memory".
  bool compiled = false;             ///< This process ran the compiler for it.
  bool generic = false;              ///< The generic kernel serves while the shape's is compiled.
  std::vector<LaunchLimits> limits;  ///< One a function.
};

}  // namespace broach
