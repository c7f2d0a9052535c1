#pragma once

#include "broach/kernel_info.hpp"
#include "runtime/operator.hpp"

namespace broach::runtime {

/// What an operator is now.
KernelInfo info_of(const Operator& op);

}  // namespace broach::runtime
