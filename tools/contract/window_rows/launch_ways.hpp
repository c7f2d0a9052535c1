#pragma once

#include <string>
#include <vector>

#include "tools/contract/window_rows/kernel.hpp"

namespace broach::contract::window_rows {

/// One of the ways in which a kernel's blocks may share a launch's work.
struct LaunchWay {
  std::string name;  ///< Empty where there is only one.
  Decoder decoder;   ///< Lives no longer than the kernel.
};

/// Every way of a kernel.
///
/// tile64's decode folds tiles in the block, in a row's last block to arrive, or in a second
/// kernel. A device picks by the size of the problem, so a fault in one of them would show on one
/// device and stay hidden on another: gates go through all.
///
/// Errors:  the launch's that does not know the kernel's plan.
Result<std::vector<LaunchWay>> launch_ways(const Kernel& kernel);

}  // namespace broach::contract::window_rows
