#pragma once

#include "specializer/family.hpp"

namespace broach::specializer::qk_rows {

/// RoPE, head norms and cache writes for the inputs of attention.
const Family& family() noexcept;

}  // namespace broach::specializer::qk_rows
